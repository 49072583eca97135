// Small SVG and HTML elements shared by the report's drawings.
#pragma once

#include <capibara/tpu/compiled.h>

#include <string>

namespace capibara::tpu {

namespace drawing {

constexpr double kWidth = 640, kHeight = 240, kLeft = 64, kBottom = 36;

std::string number(double value, int digits = 2);
std::string escaped(const std::string& text);
std::string frame(const std::string& inside, double height = kHeight);
std::string label(double x, double y, const std::string& text, const char* anchor = "start");
std::string line(double x1, double y1, double x2, double y2, const char* kind);

}  // namespace drawing

// The part of the report compiled by libtpu: memory compared with the model's, over the schedule, the largest buffers
// with their source lines, collectives, cycles.
std::string compiled_html(const MemoryPlan& memory, const StepPlan& step, const Slice& slice,
                          const CompiledProgram& program);

}  // namespace capibara::tpu
