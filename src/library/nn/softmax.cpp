// jax.nn: softmax, logarithms of sums of exponentials, standardisation and one-hot codes.
#include <capibara/config.h>
#include <capibara/custom_derivatives.h>
#include <capibara/nn/softmax.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::nn {

using namespace terms;

namespace {

Array exponential(const Array& x) { return lax::exp(promote_inexact("exp", x)); }

// The largest element; minus infinity if none is included.
Array greatest_of(const Array& x, const numpy::Axis& axis, const std::optional<Array>& mask) {
  return max(x, {.axis = axis, .keepdims = true, .initial = -infinity, .where = mask});
}

// The maximum only scales both sides of the quotient: without a custom rule it is treated as a constant instead.
Array masked_softmax(const Array& x, const numpy::Axis& axis, const std::optional<Array>& mask, bool has_rule) {
  const Array greatest = greatest_of(x, axis, mask);
  const Array safe = mask ? where(*mask, x, -infinity) : x;
  const Array unnormalized = exponential(safe - (has_rule ? greatest : lax::stop_gradient(greatest)));
  const Array result = unnormalized / sum(unnormalized, {.axis = axis, .keepdims = true, .where = mask});
  return mask ? where(*mask, result, 0) : result;
}

// y (dx - sum(y dx)): finite even if the plain derivative of the quotient is not.
Array softmax_tangent(const Array& y, const Array& tangent, const numpy::Axis& axis, const std::optional<Array>& mask) {
  return y * (tangent - sum(y * tangent, {.axis = axis, .keepdims = true, .where = mask}));
}

struct SignedLogarithm {
  Array log, sign;
};

SignedLogarithm signed_logsumexp(const Array& a, const LogsumexpOptions& options, bool absolute) {
  Array x = options.where ? where(*options.where, a, 0) : a, factors;
  if (options.b) {
    const Arrays both = promote_args_inexact("logsumexp", {x, *options.b});
    x = where(both[1] != 0, both[0], -infinity);
    factors = both[1];
  } else {
    x = promote_inexact("logsumexp", x);
  }
  const Ints axes = options.axis.resolve("logsumexp", x.ndim());
  Array greatest = greatest_of(is_complex(x.dtype()) ? lax::real(x) : x, options.axis, options.where);
  Array finite = lax::is_finite(greatest);
  greatest = lax::stop_gradient(lax::select(finite, greatest, lax::full_like(greatest, 0)));
  Array exponentials = lax::exp(x - lax::convert_element_type(greatest, x.dtype(), false));
  if (options.b) exponentials = exponentials * factors;
  Array total = sum(exponentials, {.axis = options.axis, .keepdims = options.keepdims, .where = options.where});
  const Array sign = lax::sign(total);
  if (absolute || !is_complex(x.dtype())) total = lax::abs(total);
  if (!options.keepdims) greatest = lax::squeeze(greatest, axes);
  Array logarithm = lax::log(total);
  return {logarithm + lax::convert_element_type(greatest, total.dtype(), false), sign};
}

}  // namespace

Array softmax(const Array& x, const SoftmaxOptions& options) {
  const numpy::Axis axis = options.axis;
  if (!capibara::config().softmax_custom_jvp) return masked_softmax(x, axis, options.where, false);
  if (!options.where) {
    auto function = custom_jvp([axis](Array in) { return masked_softmax(in, axis, std::nullopt, true); }, "_softmax");
    function.defjvp([options, axis](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
      const Array y = softmax(std::get<0>(primals), options);
      return std::tuple<Array, Array>(y, softmax_tangent(y, std::get<0>(tangents), axis, std::nullopt));
    });
    return function(x);
  }
  auto function = custom_jvp([axis](Array in, Array mask) { return masked_softmax(in, axis, mask, true); }, "_softmax");
  function.defjvp([axis](const std::tuple<Array, Array>& primals, const std::tuple<Array, Array>& tangents) {
    const auto& [in, mask] = primals;
    const Array y = softmax(in, {.axis = axis, .where = mask});
    return std::tuple<Array, Array>(y, softmax_tangent(y, std::get<0>(tangents), axis, mask));
  });
  return function(x, *options.where);
}

Array log_softmax(const Array& x, const SoftmaxOptions& options) {
  const Array greatest = greatest_of(x, options.axis, options.where);
  const Array safe = options.where ? where(*options.where, x, -infinity) : x;
  const Array shifted = safe - lax::stop_gradient(greatest);
  const Array total = sum(exponential(shifted), {.axis = options.axis, .keepdims = true, .where = options.where});
  const Array result = shifted - lax::log(total);
  return options.where ? where(*options.where, result, -infinity) : result;
}

Array logsumexp(const Array& a, const LogsumexpOptions& options) {
  const SignedLogarithm result = signed_logsumexp(a, options, false);
  if (!options.b || is_complex(result.log.dtype())) return result.log;
  Array is_less = result.sign < 0;
  return where(is_less, constant(result.log, not_a_number), result.log);
}

std::pair<Array, Array> logsumexp_with_sign(const Array& a, const LogsumexpOptions& options) {
  SignedLogarithm result = signed_logsumexp(a, options, true);
  return {std::move(result.log), std::move(result.sign)};
}

Array logmeanexp(const Array& x, const LogmeanexpOptions& options) {
  const Array total = logsumexp(x, {.axis = options.axis, .keepdims = options.keepdims, .where = options.where});
  if (options.where) {
    const Array counted = broadcast_to("logmeanexp", *options.where, x.shape());
    return total - lax::log(sum(counted, {.axis = options.axis, .dtype = total.dtype(), .keepdims = options.keepdims}));
  }
  double count = 1;
  for (int64_t axis : options.axis.resolve("logmeanexp", x.ndim())) count *= static_cast<double>(x.shape(axis));
  return total - constant(total, std::log(count));
}

Array standardize(const Array& x, const StandardizeOptions& options) {
  const numpy::MeanOptions over{.axis = options.axis, .keepdims = true, .where = options.where};
  const Array center = options.mean ? *options.mean : mean(x, over);
  Array variance;
  if (options.variance) {
    variance = *options.variance;
  } else if (options.algorithm == "stable") {
    variance = mean(lax::square(x - center), over);
  } else if (options.algorithm == "fast") {
    Array mean_x = mean(lax::square(x), over);
    variance = maximum(0, mean_x - lax::square(center));
  } else {
    throw ValueError(concat("standardize: algorithm must be 'fast' or 'stable', got '", options.algorithm, "'"));
  }
  Array difference = x - center;
  return difference * lax::rsqrt(variance + options.epsilon);
}

Array one_hot(const Array& x, int64_t num_classes, const OneHotOptions& options) {
  const DType dtype = options.dtype.value_or(default_float());
  if (!options.axis_name.empty()) {
    const int64_t size = lax::axis_size(options.axis_name);
    if (size != num_classes) {
      throw ValueError(concat("one_hot: num_classes must be the size of axis '", options.axis_name, "', ", size,
                              ", got ", num_classes));
    }
    return lax::convert_element_type(x == lax::axis_index(options.axis_name), dtype, false);
  }
  const int64_t axis = canonical_axis("one_hot", options.axis, x.ndim() + 1);
  Shape classes(static_cast<std::size_t>(x.ndim() + 1), 1);
  classes[static_cast<std::size_t>(axis)] = num_classes;
  const Array codes = lax::broadcasted_iota(x.dtype(), classes, axis);
  return lax::convert_element_type(lax::expand_dims(x, {axis}) == codes, dtype, false);
}

}  // namespace capibara::jax::nn
