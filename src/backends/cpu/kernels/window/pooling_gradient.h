// The gradient of pooling with channels first.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

// For a select_and_scatter_add; empty for windows over other dimensions and for other types.
HostKernel make_pooling_gradient(const KernelRequest& request);

}  // namespace capibara::cpu
