// What the toolbox's functions share: slices by name, positive numbers, numbers as Python prints them.
#pragma once

#include <capibara/tpu/request.h>

#include <string>
#include <vector>

namespace capibara::tpu {

// The slice of a name. TPUError, beginning with `operation`, where there is none.
Slice named_slice(const std::string& operation, const std::string& tpu);
// TPUError where it is not above zero.
void require_positive(const std::string& operation, const char* name, double value);
// A number as %.3g and the like, and as Python's repr.
std::string number_text(const char* format, double value);
std::string number_text(double value);
// How devices are split where a request does not say it: groups of a power of two share a sequence where there are
// fewer sequences than devices.
PlanMesh assumed_mesh(const Slice& slice, double batch_size);

}  // namespace capibara::tpu
