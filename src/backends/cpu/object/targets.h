// The targets of object code by name.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/execution/compiler.h"

namespace capibara::cpu {

// In ascending order of levels. Raises ValueError for an unknown name, and for different architectures.
std::vector<Target> object_targets(const std::vector<std::string>& names);

}  // namespace capibara::cpu
