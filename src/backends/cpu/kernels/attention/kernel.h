// The makers of the CPU kernels of attention, dense and block-sparse.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu::attention {

HostKernel make_forward(const KernelRequest& request);
HostKernel make_backward(const KernelRequest& request);

}  // namespace capibara::cpu::attention
