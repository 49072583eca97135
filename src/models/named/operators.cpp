// Operators: arithmetic, comparison, logic and shifts, on tensors and on plain numbers.
#include "models/named/numbers.h"

#include <capibara/lax.h>
#include <capibara/numpy.h>

#include <cmath>

namespace capibara::models {

namespace jnp = jax::numpy;

namespace {

Compute binary(Binary arrays, double (*numbers)(double, double), bool whole = true) {
  return [=](const Operands& c) { return on_numbers(c, arrays, numbers, whole); };
}

Compute comparison(Binary arrays, bool (*numbers)(double, double)) {
  return [=](const Operands& c) -> Value {
    if (c.at(0).is_number() && c.at(1).is_number()) return numbers(c.at(0).number(), c.at(1).number());
    return on_numbers(c, arrays, nullptr, false);
  };
}

// Near zero the derivative of a power with a small exponent is unbounded; it is replaced there by a line through zero.
Array robust_power(const Array& base, const Array& exponent, double threshold) {
  Array limit = Array(1.0) - Array(std::log(threshold)) / jnp::log(jnp::absolute(base));
  Array steep = (exponent < limit) & (jnp::absolute(base) < Array(threshold));
  Array safe = jnp::where(steep, Array(threshold), base);
  Array line = Array(1.0 / threshold) * jnp::maximum(base, -base);
  return jnp::where(steep, line, jnp::power(jnp::absolute(safe), exponent));
}

Array robust_sqrt(const Array& x, double threshold) {
  Array below = jnp::absolute(x) < Array(threshold);
  Array safe = jnp::where(below, Array(1.0), x);
  return jnp::where(below, jnp::absolute(x) * Array(1.0 / std::sqrt(threshold)), jnp::sqrt(jnp::absolute(safe)));
}

Value power_of(const Operands& c) {
  if (c.argument("robust").boolean()) {
    Array base = c.array("base"), exponent = c.array("exponent");
    return robust_power(base, exponent, c.threshold("threshold"));
  }
  return on_numbers(
      c, jnp::power, [](double a, double b) { return std::pow(a, b); }, true);
}

std::string power_keys(const Arguments& arguments) {
  return arguments.flag("robust") ? "base, exponent, threshold -> output" : "base, exponent -> output";
}

std::string sqrt_keys(const Arguments& arguments) {
  return arguments.flag("robust") ? "input[V...], threshold -> output[V...]" : "input[V...] -> output[V...]";
}

Value square_root(const Operands& c) {
  if (c.argument("robust").boolean()) return robust_sqrt(c.array(0), c.threshold("threshold"));
  if (c.at(0).is_number()) return std::sqrt(c.at(0).number());
  return jnp::sqrt(c.array(0));
}

Value matrix_product(const Operands& c) {
  Array left = c.array(0), right = c.array(1);
  return jnp::matmul(left, right);
}

Compute number_or_array(Unary arrays, double (*numbers)(double)) {
  return [=](const Operands& c) -> Value {
    if (!c.at(0).is_number()) return arrays(c.array(0));
    double result = numbers(c.at(0).number());
    if (!c.at(0).is<double>() && result == std::floor(result)) return static_cast<int64_t>(result);
    return result;
  };
}

Value clamp(const Operands& c) {
  jnp::ClipOptions options;
  if (c["min_val"].given() && !c["min_val"].is_none()) options.min = c.array("min_val");
  if (c["max_val"].given() && !c["max_val"].is_none()) options.max = c.array("max_val");
  return jnp::clip(c.array(0), options);
}

// Without a dtype shifts of int64 by negative counts give 0, as in NumPy.
Value shift(const Operands& c, Binary function) {
  Array x = c.array(0), count = c.array(1);
  return function(x, count);
}

double maximum_of(double a, double b) { return a > b ? a : b; }
double minimum_of(double a, double b) { return a < b ? a : b; }

}  // namespace

Records operator_records() {
  const char* two = "left, right -> output";
  const char* ratio = "numerator, denominator -> output";
  const char* same = "input[V...] -> output[V...]";
  ShapeRule joint = broadcast_rule("left", "right", "output");
  ShapeRule quotient = broadcast_rule("numerator", "denominator", "output");
  return {
      {"Buffer", "input", "input -> output", "Its input.", [](const Operands& c) { return c.at(0); },
       [](RuleScope& s) {
         if (s.dims("input")) s.set("output", *s.dims("input"));
         if (s.dims("output")) s.set("input", *s.dims("output"));
       }},
      {"Add", "left, right", two, "left + right.", binary(jnp::add, [](double a, double b) { return a + b; }), joint},
      {"Subtract", "left, right", two, "left - right.", binary(jnp::subtract, [](double a, double b) { return a - b; }),
       joint},
      {"Multiply", "left, right", two, "left * right.", binary(jnp::multiply, [](double a, double b) { return a * b; }),
       joint},
      {"Divide", "numerator, denominator", ratio, "numerator / denominator.",
       binary(
           jnp::true_divide, [](double a, double b) { return a / b; }, false),
       quotient},
      {"FloorDivide", "numerator, denominator", ratio, "The quotient rounded down.",
       binary(jnp::floor_divide, [](double a, double b) { return std::floor(a / b); }), quotient},
      {"Minimum", "left, right", two, "The smaller one.", binary(jnp::minimum, minimum_of), joint},
      {"Maximum", "left, right", two, "The larger one.", binary(jnp::maximum, maximum_of), joint},
      {"Power", "robust=False, base, exponent, threshold='MIN_POSITIVE_NORMAL'", "base, exponent -> output",
       "base to the power exponent; robust: with a bounded derivative at 0.", power_of,
       broadcast_rule("base", "exponent", "output"), nullptr, power_keys},
      {"MatrixMultiply", "left, right", "left[?], right[?] -> output[?]", "The matrix product.", matrix_product,
       matmul_rule()},
      {"Greater", "left, right", two, "left > right.",
       comparison(jnp::greater, [](double a, double b) { return a > b; }), joint},
      {"Less", "left, right", two, "left < right.", comparison(jnp::less, [](double a, double b) { return a < b; }),
       joint},
      {"GreaterEqual", "left, right", two, "left >= right.",
       comparison(jnp::greater_equal, [](double a, double b) { return a >= b; }), joint},
      {"LessEqual", "left, right", two, "left <= right.",
       comparison(jnp::less_equal, [](double a, double b) { return a <= b; }), joint},
      {"Equal", "left, right", two, "left == right.", comparison(jnp::equal, [](double a, double b) { return a == b; }),
       joint},
      {"NotEqual", "left, right", two, "left != right.",
       comparison(jnp::not_equal, [](double a, double b) { return a != b; }), joint},
      {"LogicalNot", "input", same, "not input.", unary(jnp::logical_not)},
      {"LogicalAnd", "left, right", two, "left & right.",
       comparison(jnp::bitwise_and, [](double a, double b) { return a != 0 && b != 0; }), joint},
      {"LogicalOr", "left, right", two, "left | right.",
       comparison(jnp::bitwise_or, [](double a, double b) { return a != 0 || b != 0; }), joint},
      {"LogicalXOr", "left, right", two, "left ^ right.",
       comparison(jnp::bitwise_xor, [](double a, double b) { return (a != 0) != (b != 0); }), joint},
      {"ShiftLeft", "input, shift", "input, shift -> output", "input << shift.",
       [](const Operands& c) { return shift(c, jnp::left_shift); }, broadcast_rule("input", "shift", "output")},
      {"ShiftRight", "input, shift", "input, shift -> output", "input >> shift.",
       [](const Operands& c) { return shift(c, jnp::right_shift); }, broadcast_rule("input", "shift", "output")},
      {"Absolute", "input", same, "|input|.", number_or_array(jnp::absolute, [](double x) { return std::abs(x); })},
      {"Negate", "input", same, "-input.", number_or_array(jnp::negative, [](double x) { return -x; })},
      {"Exponential", "input", same, "e to the power input.", unary(jnp::exp)},
      {"Sqrt",
       "robust=False, input, threshold='MIN_POSITIVE_NORMAL'",
       same,
       "The square root; robust: of |input|, with a bounded derivative.",
       square_root,
       {},
       nullptr,
       sqrt_keys},
      {"Sine", "input", same, "sin(input).", unary(jnp::sin)},
      {"Cosine", "input", same, "cos(input).", unary(jnp::cos)},
      {"Floor", "input", same, "Rounded down.", number_or_array(jnp::floor, [](double x) { return std::floor(x); })},
      {"Clamp", "min_val, max_val, input", "input[V...], min_val, max_val -> output[V...]",
       "Limited to [min_val, max_val].", clamp},
      {"AtLeast1D", "input", "input -> output", "With a dimension, where it had none.", unary(jnp::atleast_1d)},
  };
}

}  // namespace capibara::models
