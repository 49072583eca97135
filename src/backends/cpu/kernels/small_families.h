// The families of kernels for few elements outside of jit, of operations that generated code computes in its loops.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers movement_makers();
KernelMakers reduction_makers();

}  // namespace capibara::cpu
