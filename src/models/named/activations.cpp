// Activations and other elementwise functions.
#include "models/named/numbers.h"

#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>

#include <cmath>

namespace capibara::models {

namespace jnp = jax::numpy;
namespace nn = jax::nn;

namespace {

// The tangent line below the threshold: log stays finite and differentiable at 0.
Array robust_log(const Array& x, double threshold) {
  Array size = jnp::absolute(x);
  Array below = size < Array(threshold);
  Array safe = jnp::where(below, Array(1.0), size);
  return jnp::where(below, Array(std::log(threshold)) + size / Array(threshold) - Array(1.0), jnp::log(safe));
}

std::string log_keys(const Arguments& arguments) {
  return arguments.flag("robust") ? "input[V...], threshold -> output[V...]" : "input[V...] -> output[V...]";
}

// The tangent line below the threshold, with the sign of the input; 0 counts as positive.
Value stable_reciprocal(const Operands& c) {
  Array x = c.array(0);
  double t = c.threshold("threshold");
  Array below = jnp::absolute(x) < Array(t);
  Array safe = jnp::where(below, Array(1.0), x);
  Array sign = jnp::sign(x) + (Array(1.0) - jnp::sign(jnp::absolute(x)));
  Array tangent = -x / Array(t) / Array(t) + Array(2.0 / t) * sign;
  return jnp::where(below, tangent, Array(1.0) / safe);
}

Value softmax(const Operands& c) {
  const Value& axis = c["axis"];
  if (!axis.given() || axis.is_none()) return nn::softmax(c.array(0), {.axis = {}});
  return nn::softmax(c.array(0), {.axis = Ints(axis.integers())});
}

}  // namespace

Array log_with_threshold(const Array& x, bool robust, double threshold) {
  return robust ? robust_log(x, threshold) : jnp::log(x);
}

Records activation_records() {
  const char* same = "input[V...] -> output[V...]";
  return {
      {"Relu", "input", same, "max(input, 0).", unary(nn::relu)},
      {"Gelu", "approximate=False, input", same, "input times the normal distribution function of input.",
       [](const Operands& c) -> Value { return nn::gelu(c.array(0), {.approximate = c.flag("approximate")}); }},
      {"Sigmoid", "input", same, "1 / (1 + exp(-input)).", unary(nn::sigmoid)},
      {"Softmax", "input, axis=-1", "input[V...], axis=-1 -> output[V...]",
       "exp(input) divided by its sum along an axis.", softmax},
      {"Softplus", "input", same, "log(1 + exp(input)).", unary(nn::softplus)},
      {"Tanh", "input", same, "tanh(input).", unary(nn::tanh)},
      {"LeakyRelu", "slope=0.01, input", "input[V...], slope=0.01 -> output[V...]",
       "input, times slope where it is negative.",
       [](const Operands& c) -> Value {
         Array x = c.array(0);
         return nn::leaky_relu(x, {.negative_slope = c.array("slope")});
       }},
      {"StopGradient", "input", same, "Its input, without a derivative.", unary(jax::lax::stop_gradient)},
      {"Log",
       "robust=False, input, threshold='MIN_POSITIVE_NORMAL'",
       same,
       "The logarithm; robust: of |input|, finite at 0.",
       [](const Operands& c) -> Value {
         bool robust = c.argument("robust").boolean();
         return log_with_threshold(c.array(0), robust, robust ? c.threshold("threshold") : 0);
       },
       {},
       nullptr,
       log_keys},
      {"StableReciprocal", "input, threshold='STABLE_RECIPROCAL_THRESHOLD'",
       "input[V...], threshold='STABLE_RECIPROCAL_THRESHOLD' -> output[V...]", "1 / input, finite at 0.",
       stable_reciprocal},
      {"Sign", "input", same, "-1, 0 or 1.", unary(jnp::sign)},
      {"Square", "input", same, "input squared.", unary(jnp::square)},
      {"IsNan", "input", same, "Whether an element is NaN.", unary(jnp::isnan)},
      {"ZerosLike", "input", same, "Zeros of the shape of input.",
       [](const Operands& c) -> Value { return jnp::zeros_like(c.array(0)); }},
      {"NanToNum", "nan=0.0, posinf=None, neginf=None, input",
       "input[V...], nan=0.0, posinf=None, neginf=None -> output[V...]", "Numbers instead of NaN and infinities.",
       [](const Operands& c) -> Value {
         jnp::NanToNumOptions options;
         options.nan = c.array("nan");
         if (!c["posinf"].is_none()) options.posinf = c.array("posinf");
         if (!c["neginf"].is_none()) options.neginf = c.array("neginf");
         return jnp::nan_to_num(c.array(0), options);
       }},
  };
}

}  // namespace capibara::models
