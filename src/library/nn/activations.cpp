// jax.nn: activation functions, with jax's derivatives at corners.
#include <capibara/custom_derivatives.h>
#include <capibara/nn/activations.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::nn {

using namespace terms;

namespace {

// The halves of an axis.
std::pair<Array, Array> halves(const char* name, const Array& x, int64_t axis) {
  if (axis < -x.ndim() || axis >= x.ndim()) {
    throw IndexError(concat(name, ": axis ", axis, " is out of bounds for ", to_string(x.type())));
  }
  axis = axis < 0 ? axis + x.ndim() : axis;
  const int64_t size = x.shape(axis);
  if (size % 2 != 0) {
    throw ValueError(concat(name, ": the size of axis ", axis, " must be even, got ", to_string(x.type())));
  }
  return {lax::slice_in_dim(x, 0, size / 2, 1, axis), lax::slice_in_dim(x, size / 2, size, 1, axis)};
}

// A tangent that passes only where the condition holds.
Array pass_where(const Array& condition, const Array& tangent) {
  return lax::select(condition, tangent, lax::full_like(tangent, 0));
}

}  // namespace

Array identity(const Array& x) { return x; }

Array relu(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return maximum(in, 0); }, "relu");
    f.defjvps([](const Array& tangent, const Array&, const Array& in) { return pass_where(in > 0, tangent); });
    return f;
  }();
  return function(x);
}

Array relu6(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return minimum(maximum(in, 0), 6.0); }, "relu6");
    f.defjvps([](const Array& tangent, const Array&, const Array& in) {
      Array is_greater = in > 0;
      return pass_where(is_greater & (in < 6), tangent);
    });
    return f;
  }();
  return function(x);
}

Array sigmoid(const Array& x) { return lax::logistic(x); }
Array tanh(const Array& x) { return lax::tanh(promote_inexact("tanh", x)); }
Array softplus(const Array& x) { return logaddexp(x, 0); }

Array sparse_plus(const Array& x) {
  const Array parabola = lax::square(x + 1.0) / 4;
  Array is_at_most = x <= -1.0;
  return where(is_at_most, 0.0, where(x >= 1.0, x, parabola));
}

Array sparse_sigmoid(const Array& x) { return 0.5 * minimum(2.0, maximum(0.0, x + 1.0)); }
Array soft_sign(const Array& x) { return x / (lax::abs(x) + 1); }
Array silu(const Array& x) { return x * sigmoid(x); }
Array swish(const Array& x) { return silu(x); }
Array mish(const Array& x) { return x * tanh(softplus(x)); }
Array log_sigmoid(const Array& x) { return -softplus(-x); }
Array hard_tanh(const Array& x) {
  Array is_greater = x > 1;
  return where(is_greater, 1, where(x < -1, -1, x));
}
Array hard_sigmoid(const Array& x) { return relu6(x + 3.0) / 6.0; }
Array hard_silu(const Array& x) { return x * hard_sigmoid(x); }
Array hard_swish(const Array& x) { return hard_silu(x); }

Array log1mexp(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp(
        [](Array in) {
          const Array minus = promote_inexact("log1mexp", -in);
          Array is_less = in < std::log(2.0), logarithm = lax::log(-lax::expm1(minus));
          return where(is_less, logarithm, lax::log1p(-lax::exp(minus)));
        },
        "log1mexp");
    f.defjvps([](const Array& tangent, const Array&, const Array& in) {
      return tangent / lax::expm1(promote_inexact("log1mexp", in));
    });
    return f;
  }();
  return function(x);
}

Array squareplus(const Array& x, const SquareplusOptions& options) {
  const Array root = lax::sqrt(promote_inexact("squareplus", lax::square(x) + options.b));
  return (x + root) / 2;
}

Array elu(const Array& x, const EluOptions& options) {
  const Array positive = x > 0;
  // The unused branch gets 0, so that its derivative is finite.
  const Array negative_part = lax::expm1(where(positive, 0.0, x));
  return where(positive, x, options.alpha * negative_part);
}

Array celu(const Array& x, const EluOptions& options) {
  Array larger = maximum(x, 0.0);
  return larger + options.alpha * lax::expm1(minimum(x, 0.0) / options.alpha);
}

// The constants make zero mean and unit variance a fixed point (arXiv 1706.02515).
Array selu(const Array& x) {
  return 1.0507009873554804934193349852946 * elu(x, {.alpha = 1.6732632423543772848170429916717});
}

Array leaky_relu(const Array& x, const LeakyReluOptions& options) {
  Array is_at_least = x >= 0;
  return where(is_at_least, x, options.negative_slope * x);
}

Array gelu(const Array& x, const GeluOptions& options) {
  const Array in = promote_inexact("gelu", x);
  if (options.approximate) {
    const Array typed_constant_in = typed_constant(in, std::sqrt(2 / pi));
    const Array inner = typed_constant_in * (in + 0.044715 * lax::integer_pow(in, 3));
    return in * (0.5 * (1.0 + lax::tanh(inner)));
  }
  Array product = 0.5 * in, negated = -in;
  return product * lax::erfc(negated * typed_constant(in, std::sqrt(0.5)));
}

Array glu(const Array& x, const GateOptions& options) {
  const auto [first, second] = halves("glu", x, options.axis);
  return first * sigmoid(second);
}

Array swiglu(const Array& x, const GateOptions& options) {
  const auto [first, second] = halves("swiglu", promote_inexact("swiglu", x), options.axis);
  return silu(first) * second;
}

Array contextual_relu(const Array& x, const Array& context) {
  const Array in = promote_inexact("contextual_relu", context);
  const Array level = in.ndim() == 0 ? in : mean(in, {.axis = -1, .keepdims = true});
  return relu(x - lax::tanh(level));
}

}  // namespace capibara::jax::nn
