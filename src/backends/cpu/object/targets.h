// The targets of object code by name.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/execution/compiler.h"

namespace capibara::cpu {

// From the lowest level on. Raises ValueError for a name that there is not, and for different architectures.
std::vector<Target> object_targets(const std::vector<std::string>& names);

}  // namespace capibara::cpu
