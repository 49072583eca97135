// The terms of formulas: jax.numpy's functions as far as jax.nn and jax.scipy need them.
#include "library/nn/terms.h"

#include <capibara/control.h>
#include <capibara/custom_derivatives.h>

#include <algorithm>

namespace capibara::terms {

namespace {

DType wide(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

// The dtype in which jax.numpy sums: booleans and narrow integers in the default ones.
DType summed(DType dtype) {
  if (is_bool(dtype)) return default_int();
  if (is_unsigned(dtype)) return bits(dtype) < bits(default_uint()) ? default_uint() : dtype;
  if (is_integer(dtype)) return bits(dtype) < bits(default_int()) ? default_int() : dtype;
  return dtype;
}

Array masked(const char* name, const Array& x, const std::optional<Array>& mask, const Array& otherwise) {
  if (!mask) return x;
  if (!is_bool(mask->dtype())) {
    throw ValueError(concat(name, ": where must be None or a boolean array, got ", to_string(mask->type())));
  }
  return where(*mask, x, otherwise);
}

Array without_infinity(const Array& x) { return where(x == constant(x, infinity), lax::zeros_like(x), x); }

int64_t elements_along(const Array& x, const Ints& axes) {
  int64_t count = 1;
  for (int64_t axis : axes) count *= x.shape(axis);
  return count;
}

}  // namespace

Array constant(const Array& x, double value) { return lax::full({}, value, x.dtype()); }

Array where(const Array& condition, const Array& yes, const Array& no) {
  const Array truth = is_bool(condition.dtype()) ? condition : condition != 0;
  const Arrays values = promote_dtypes({yes, no});
  const Arrays all = broadcast_arrays("where", {truth, values[0], values[1]});
  return lax::select(all[0], all[1], all[2]);
}

Array maximum(const Array& a, const Array& b) {
  const Arrays x = promote_args("maximum", {a, b});
  return lax::max(x[0], x[1]);
}

Array minimum(const Array& a, const Array& b) {
  const Arrays x = promote_args("minimum", {a, b});
  return lax::min(x[0], x[1]);
}

Array is_nan(const Array& x) { return lax::ne(x, x); }

Array logaddexp(const Array& a, const Array& b) {
  static const auto function = [] {
    auto f = jax::custom_jvp(
        [](Array x, Array y) {
          const Array difference = x - y;
          const Array stable = lax::max(x, y) + lax::log1p(lax::exp(-lax::abs(difference)));
          return where(is_nan(difference), x + y, stable);
        },
        "logaddexp");
    f.defjvp([](const std::tuple<Array, Array>& primals, const std::tuple<Array, Array>& tangents) {
      const auto& [x, y] = primals;
      const auto& [x_tangent, y_tangent] = tangents;
      const Array result = logaddexp(x, y), level = without_infinity(result);
      const Array from_x = x_tangent * lax::exp(without_infinity(x) - level);
      const Array from_y = y_tangent * lax::exp(without_infinity(y) - level);
      return std::tuple<Array, Array>(result, from_x + from_y);
    });
    return f;
  }();
  const Arrays x = promote_args_inexact("logaddexp", {a, b});
  return function(x[0], x[1]);
}

Array polynomial(const Array& x, std::initializer_list<double> coefficients) {
  Array result = lax::zeros_like(x);
  for (double coefficient : coefficients) result = result * x + constant(x, coefficient);
  return result;
}

Array sum(const Array& x, const Over& over) {
  const DType result = summed(x.dtype()), inner = wide(result);
  const Array masked_x = masked("sum", lax::convert_element_type(x, inner, false), over.where, lax::full({}, 0, inner));
  const Array total = lax::reduce_sum(masked_x, {over.axes});
  return lax::convert_element_type(over.keepdims ? lax::expand_dims(total, over.axes) : total, result, false);
}

Array max(const Array& x, const Over& over) {
  const DType dtype = x.dtype();
  Array least = is_floating(dtype)  ? lax::full({}, finfo(dtype).has_infinity ? -infinity : finfo(dtype).min, dtype)
                : is_integer(dtype) ? lax::full({}, iinfo(dtype).min, dtype)
                                    : lax::full({}, is_bool(dtype) ? Array(false) : Array(-infinity), dtype);
  const Array strong = masked("max", lax::convert_element_type(x, dtype, false), over.where, least);
  Array result = elements_along(strong, over.axes) == 0
                     ? lax::full(lax::reduce_sum(lax::full(strong.shape(), 0), {over.axes}).shape(), least)
                     : lax::max(least, lax::reduce_max(strong, {over.axes}));
  return over.keepdims ? lax::expand_dims(result, over.axes) : result;
}

Array count(const Array& x, const Over& over, DType dtype) {
  if (!over.where) return lax::full({}, elements_along(x, over.axes), dtype);
  const Array counted = broadcast_to("mean", lax::convert_element_type(*over.where, dtype), x.shape());
  const Array total = lax::reduce_sum(counted, {over.axes});
  return over.keepdims ? lax::expand_dims(total, over.axes) : total;
}

Array mean(const Array& x, const Over& over) {
  const DType result = inexact_dtype(x.dtype()), inner = wide(result);
  const Array total = sum(lax::convert_element_type(x, inner, false), over);
  return lax::convert_element_type(lax::div(total, count(x, over, inner)), result, false);
}

Array move_axis(const Array& x, int64_t from, int64_t to) {
  from = canonical_axis("moveaxis", from, x.ndim());
  to = canonical_axis("moveaxis", to, x.ndim());
  Ints order;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (i != from) order.push_back(i);
  }
  order.insert(order.begin() + to, from);
  return lax::transpose(x, order);
}

Array vectorize(const char* name, const Arrays& arguments, const std::function<Array(const Arrays&)>& function) {
  const Arrays broadcast = broadcast_arrays(name, arguments);
  const Shape shape = broadcast[0].shape();
  if (shape.empty()) return function(broadcast);
  Arrays flat;
  for (const Array& argument : broadcast) flat.push_back(lax::reshape(argument, {element_count(shape)}));
  const Arrays results = lax::detail::vmap_over_front(
      [&](std::span<const Array> in) { return Arrays{function(Arrays(in.begin(), in.end()))}; }, flat);
  return lax::reshape(results[0], shape);
}

void require_real(const char* function, const Array& x) {
  if (is_complex(x.dtype())) {
    throw ValueError(concat(function, " does not support complex-valued inputs, got ", to_string(x.type())));
  }
}

}  // namespace capibara::terms
