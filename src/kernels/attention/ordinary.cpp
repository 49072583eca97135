// Checks for NaN, infinities and overflow, with bounds from one pass over small arrays, mostly one number per row.
//
// A visible NaN or infinite logit makes its row's log-sum-exp NaN or infinite. The log-sum-exp does not reveal
// problems in values, in hidden keys (0 times NaN is NaN), and in logits that overflow in a type narrower than the
// accumulator type.
#include "kernels/attention/ordinary.h"

#include <capibara/control.h>
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/conditions.h"
#include "kernels/attention/spec.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
// Sums below sum_limit are far from overflow in float32; half_limit is half of float16's range, so differences fit too.
constexpr double sum_limit = 1e36, half_limit = 3e4;
// Adding a logit up to this limit leaves a hidden one unchanged.
constexpr double absorbed_limit = 1e20;

Ints every_axis(const Array& x) {
  Ints axes;
  for (int64_t i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}

Array each(const Array& x) { return lax::reduce_and(x, {.axes = every_axis(x)}); }
Array some(const Array& x) { return lax::reduce_or(x, {.axes = every_axis(x)}); }
Array below(const Array& x, double limit) { return x < scalar_of(x.dtype(), limit); }

// The largest magnitude; NaN if the array has one, which is below no limit.
Array greatest(const Array& x, DType wide) {
  return lax::reduce_max(lax::abs(lax::convert_element_type(x, wide, false)), {.axes = every_axis(x)});
}

// The norm of the longest row.
Array greatest_norm(const Array& x, DType wide) {
  const Array own = lax::convert_element_type(x, wide, false);
  const Array squares = lax::reduce_sum(own * own, {.axes = {3}});
  return lax::sqrt(lax::reduce_max(squares, {.axes = {0, 1, 2}}));
}

}  // namespace

bool OrdinaryAttention::has_narrow_logits(DType dtype) const {
  const auto& steps = plain_.steps;
  return plain_.product == dtype ||
         std::any_of(steps.begin(), steps.end(), [&](const LogitStep& step) { return step.dtype == dtype; });
}

// The dot product of two rows is at most the product of their norms.
Array OrdinaryAttention::logits_stay_small() const {
  const DType wide = attention_sum_dtype(plain_.dtype);
  const Array norms = greatest_norm(operands_.query, wide) * greatest_norm(operands_.key, wide);
  const double limit = has_narrow_logits(DType::float16) ? half_limit : absorbed_limit;
  return below(norms, limit / std::max(1.0, std::abs(plain_.scale)));
}

Array OrdinaryAttention::rows(const Array& lse) const {
  const bool has_bias = !plain_.biases.empty();
  const bool hidden_is_number = plain_.condition && plain_.hidden > -unbounded;
  const bool limited = hidden_is_number || plain_.product != attention_sum_dtype(plain_.dtype);
  Array fine = below(lax::abs(lse), limited ? seen_limit : unbounded);
  if (!may_hide_all_) return each(fine);
  // Rows of logits that all are -inf give NaN, as in the fused form.
  if (!hidden_is_number) fine = fine | (lse == scalar_of(lse.dtype(), -unbounded));
  if (!limited) return each(fine);
  const Array low = below(lse, -seen_limit);
  // In this case the hidden number is a bias, which a large logit would change.
  if (hidden_is_number && has_bias) return each(fine | low) & logits_stay_small();
  // Very low rows, such as those with all keys hidden by a number, are correct if no visible logit is very low.
  const Array small = lax::cond(
      some(low), [&] { return logits_stay_small(); }, [] { return exact_scalar(DType::bool_, 1); });
  return each(fine | low) & small;
}

// Checks the smaller of the values and the output; values that may be skipped are always checked directly.
Array OrdinaryAttention::values(const Array& output) const {
  const DType wide = attention_sum_dtype(plain_.dtype);
  if (!skips_ && output.size() < operands_.value.size()) return below(greatest(output, wide), unbounded);
  return below(greatest(operands_.value, wide), sum_limit / static_cast<double>(operands_.value.shape(2)));
}

Array OrdinaryAttention::forward(const Array& output, const Array& lse) const {
  Array ordinary = rows(lse) & values(output);
  if (has_narrow_logits(DType::float16)) ordinary = ordinary & logits_stay_small();
  for (const Array& bias : operands_.biases) {  // without large biases the order of addition does not matter
    if (operands_.biases.size() > 1) ordinary = ordinary & each(below(bias, -hidden_limit));
  }
  return ordinary;
}

Array OrdinaryAttention::backward(const Array& forward, const Array& cotangent, DType product) const {
  const DType wide = attention_sum_dtype(plain_.dtype);
  const Array query = greatest_norm(operands_.query, wide), key = greatest_norm(operands_.key, wide);
  const Array value = greatest_norm(operands_.value, wide), gradient = greatest_norm(cotangent, wide);
  const double scale = std::max(1.0, std::abs(plain_.scale));
  const double limit = has_narrow_logits(DType::float16) ? half_limit : absorbed_limit;
  const auto rows = static_cast<double>(cotangent.size() / cotangent.shape(3));
  const Array gradients = value * gradient;
  const bool narrow = plain_.dtype == DType::float16 || product == DType::float16;
  return forward & below(query * key, limit / scale) &
         below(gradients, narrow ? half_limit / scale : sum_limit / (rows * scale)) &
         below(gradients * (query + key), sum_limit / (rows * scale)) & below(gradient, sum_limit / rows);
}

}  // namespace capibara::kernels
