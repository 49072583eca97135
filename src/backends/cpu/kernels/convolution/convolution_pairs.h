// Convolutions whose window is an image and whose output positions are few: the gradient of a kernel.
#pragma once

#include "backends/cpu/kernels/convolution/convolution_plan.h"
#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

// K: Singles or Doubles. Requires plan.pairs_features().
template <class K>
void convolve_pairs(const ConvolutionPlan& plan, const typename K::Packed* lhs, const typename K::Packed* rhs,
                    typename K::Packed* out);

}  // namespace capibara::cpu
