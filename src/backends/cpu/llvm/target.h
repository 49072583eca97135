// The machine this process runs on, as a target.
#pragma once

#include "backends/cpu/execution/compiler.h"

namespace capibara::cpu {

Target host_target();

}  // namespace capibara::cpu
