// Convolutions straight from padded planes: no input panel is packed.
#pragma once

#include "backends/cpu/kernels/convolution/convolution_plan.h"
#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

// K: Singles or Doubles. Requires plan.band != 0.
template <class K>
void convolve_from_planes(const ConvolutionPlan& plan, const typename K::Packed* lhs, const typename K::Packed* rhs,
                          typename K::Packed* out);

}  // namespace capibara::cpu
