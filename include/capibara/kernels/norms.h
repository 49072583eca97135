// Fused operations on rows: norms, softmax, cross-entropy. Sums run in at least float32, results have the dtype of x.
#pragma once

#include <capibara/array.h>

#include <optional>

namespace capibara::kernels {

struct LayerNormOptions {
  double epsilon = 1e-5;
};
// Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis. Sums are float32 at
// least; the result has x's dtype, as do scale and bias, whose size is that of the last axis.
Array layer_norm(const Array& x, const Array& scale, const Array& bias, const LayerNormOptions& options = {});

struct FastLayerNormOptions {
  std::optional<Array> weight = {}, bias = {};  // by default ones and zeros
  double epsilon = 1e-5;
  bool memory_efficient = false;  // the backward pass recomputes the row statistics instead of keeping them
};
// Layer normalization with optional weight and bias.
Array fast_layer_norm(const Array& x, const FastLayerNormOptions& options = {});

struct RmsNormOptions {
  double epsilon = 1e-6;
};
// Root mean square normalization: x / sqrt(mean(x^2) + epsilon) * scale over the last axis.
Array rms_norm(const Array& x, const Array& scale, const RmsNormOptions& options = {});

struct SoftmaxOptions {
  int64_t axis = -1;
};
// exp(x) divided by its sum along one axis. A row of minus infinities is NaN, as in jax.nn.softmax.
Array softmax(const Array& x, const SoftmaxOptions& options = {});

struct CrossEntropyOptions {
  double label_smoothing = 0;   // the fraction of the target that is spread over all classes
  int64_t ignore_index = -100;  // rows with this label have loss 0 and gradient 0
};
// Minus the logarithm of the softmax probability of each row's label; the probabilities are never stored. Logits are
// [..., classes], labels integers [...]; the losses are at least float32. A label out of range gives NaN.
Array cross_entropy(const Array& logits, const Array& labels, const CrossEntropyOptions& options = {});

}  // namespace capibara::kernels
