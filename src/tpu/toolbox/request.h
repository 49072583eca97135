// Shared by the toolbox's functions: slices by name, positive numbers, numbers as Python prints them.
#pragma once

#include <capibara/tpu/request.h>

#include <string>
#include <vector>

namespace capibara::tpu {

// The slice of this name. TPUError, beginning with `operation`, if there is none.
Slice named_slice(const std::string& operation, const std::string& tpu);
// TPUError unless it is above zero.
void require_positive(const std::string& operation, const char* name, double value);
// A number formatted as %.3g and the like, or as Python's repr.
std::string number_text(const char* format, double value);
std::string number_text(double value);
// The default split over devices: groups of a power of two share a sequence if there are
// fewer sequences than devices.
PlanMesh assumed_mesh(const Slice& slice, double batch_size);

}  // namespace capibara::tpu
