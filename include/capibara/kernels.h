// Fused operations: each is defined as a composition that runs everywhere; a backend may have a kernel of its own for it.
#pragma once

#include <capibara/array.h>

namespace capibara::kernels {

struct LayerNormOptions {
  double epsilon = 1e-5;
};
// Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis. Sums are float32 at
// least; the result has x's dtype, which scale and bias have too, and their size is that of the last axis.
Array layer_norm(const Array& x, const Array& scale, const Array& bias, const LayerNormOptions& options = {});

}  // namespace capibara::kernels
