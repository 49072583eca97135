// Kernel families for small eager operations that compiled programs compute in generated loops instead.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers movement_makers();
KernelMakers reduction_makers();

}  // namespace capibara::cpu
