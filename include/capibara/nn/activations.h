// jax.nn: activation functions, elementwise unless stated otherwise.
#pragma once

#include <capibara/array.h>

namespace capibara::jax::nn {

// x itself.
Array identity(const Array& x);
// max(x, 0), with derivative 0 at 0.
Array relu(const Array& x);
// min(max(x, 0), 6), with derivative 0 at both ends.
Array relu6(const Array& x);
// 1 / (1 + exp(-x)).
Array sigmoid(const Array& x);
// The hyperbolic tangent.
Array tanh(const Array& x);
// log(1 + exp(x)).
Array softplus(const Array& x);
// 0 up to -1, x from 1 on, and (x + 1)^2 / 4 between.
Array sparse_plus(const Array& x);
// 0 up to -1, 1 from 1 on, and (x + 1) / 2 between.
Array sparse_sigmoid(const Array& x);
// x / (|x| + 1).
Array soft_sign(const Array& x);
// x sigmoid(x).
Array silu(const Array& x);
// x sigmoid(x): silu by its other name.
Array swish(const Array& x);
// x tanh(softplus(x)).
Array mish(const Array& x);
// The logarithm of the sigmoid.
Array log_sigmoid(const Array& x);
// x clamped to [-1, 1].
Array hard_tanh(const Array& x);
// relu6(x + 3) / 6.
Array hard_sigmoid(const Array& x);
// x hard_sigmoid(x).
Array hard_silu(const Array& x);
// x hard_sigmoid(x): hard_silu by its other name.
Array hard_swish(const Array& x);
// The scaled exponential linear unit, which keeps zero mean and unit variance.
Array selu(const Array& x);
// log(1 - exp(-x)) for x >= 0, accurate near 0 and far from it.
Array log1mexp(const Array& x);

struct SquareplusOptions {
  Array b = 4;  // smoothness of the corner
};
// (x + sqrt(x^2 + b)) / 2.
Array squareplus(const Array& x, const SquareplusOptions& options = {});

struct EluOptions {
  Array alpha = 1.0;
};
// x where it is positive, else alpha (exp(x) - 1).
Array elu(const Array& x, const EluOptions& options = {});
// x where it is positive, else alpha (exp(x / alpha) - 1).
Array celu(const Array& x, const EluOptions& options = {});

struct LeakyReluOptions {
  Array negative_slope = 0.01;
};
// x where it is not negative, else negative_slope x.
Array leaky_relu(const Array& x, const LeakyReluOptions& options = {});

struct GeluOptions {
  bool approximate = true;  // by tanh instead of the error function
};
// x times the normal distribution function of x, by default approximated with tanh.
Array gelu(const Array& x, const GeluOptions& options = {});

// For functions that split an axis into halves; its size must be even.
struct GateOptions {
  int64_t axis = -1;
};
// first half * sigmoid(second half) of an axis.
Array glu(const Array& x, const GateOptions& options = {});

// ---- capibara's own -------------------------------------------------------------------------------------------------

// silu(first half) * second half of an axis: a gated linear unit without weights. Capibara's own. The gate of "GLU
// Variants Improve Transformer" (arXiv 2002.05202).
Array swiglu(const Array& x, const GateOptions& options = {});
// relu(x - tanh(mean(context, axis=-1, keepdims=True))): a ReLU whose threshold follows the context. Capibara's own.
// The threshold is in (-1, 1); a context with zero mean gives the plain ReLU. The derivative at the threshold
// is 0, and flows into x and context. The context's shape without its last axis broadcasts against x.
Array contextual_relu(const Array& x, const Array& context);

}  // namespace capibara::jax::nn
