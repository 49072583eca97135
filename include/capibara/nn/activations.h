// jax.nn: activation functions, element by element unless they say otherwise.
#pragma once

#include <capibara/array.h>

namespace capibara::jax::nn {

Array identity(const Array& x);
Array relu(const Array& x);         // max(x, 0), with derivative 0 at 0
Array relu6(const Array& x);        // min(max(x, 0), 6), with derivative 0 at both ends
Array sigmoid(const Array& x);      // 1 / (1 + exp(-x))
Array tanh(const Array& x);
Array softplus(const Array& x);     // log(1 + exp(x))
Array sparse_plus(const Array& x);  // 0 up to -1, x from 1, a parabola between
Array sparse_sigmoid(const Array& x);
Array soft_sign(const Array& x);    // x / (|x| + 1)
Array silu(const Array& x);         // x sigmoid(x)
Array swish(const Array& x);
Array mish(const Array& x);         // x tanh(softplus(x))
Array log_sigmoid(const Array& x);
Array hard_tanh(const Array& x);    // x within [-1, 1]
Array hard_sigmoid(const Array& x);
Array hard_silu(const Array& x);
Array hard_swish(const Array& x);
Array selu(const Array& x);
Array log1mexp(const Array& x);     // log(1 - exp(-x)) for x >= 0

struct SquareplusOptions {
  Array b = 4;  // how smooth the corner is
};
Array squareplus(const Array& x, const SquareplusOptions& options = {});  // (x + sqrt(x^2 + b)) / 2

struct EluOptions {
  Array alpha = 1.0;
};
Array elu(const Array& x, const EluOptions& options = {});
Array celu(const Array& x, const EluOptions& options = {});

struct LeakyReluOptions {
  Array negative_slope = 0.01;
};
Array leaky_relu(const Array& x, const LeakyReluOptions& options = {});

struct GeluOptions {
  bool approximate = true;  // by tanh instead of the error function
};
Array gelu(const Array& x, const GeluOptions& options = {});

// Of functions that halve an axis, which must have an even size.
struct GateOptions {
  int64_t axis = -1;
};
// first half * sigmoid(second half).
Array glu(const Array& x, const GateOptions& options = {});

// ---- capibara's own -------------------------------------------------------------------------------------------------

// silu(first half) * second half: the gate of "GLU Variants Improve Transformer" (arXiv 2002.05202) without weights.
Array swiglu(const Array& x, const GateOptions& options = {});
// A ReLU whose threshold is a function of the context: relu(x - tanh(mean(context, axis=-1, keepdims=True))).
// The threshold lies in (-1, 1); a context that is zero on average gives the plain ReLU. The derivative at the threshold
// is 0, and flows into x and context. The context's shape without its last axis broadcasts against x.
Array contextual_relu(const Array& x, const Array& context);

}  // namespace capibara::jax::nn
