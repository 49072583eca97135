// jax.numpy: quantiles, percentiles and medians, with and without NaNs.
#include <capibara/numpy/statistics.h>

#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>

#include <algorithm>
#include <array>

#include "lax/operators/promote.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

constexpr std::array methods = {"linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"};

// The samples along the first axis, and how to restore the shape of the result.
struct Samples {
  Array values;  // samples x rest
  std::optional<Array> weights;
  std::optional<int64_t> axis;  // of a single reduced axis
  Shape kept;                   // with keepdims, the dimensions after q's axis
};

Array bring_to_front(const Array& x, const Ints& axes) {
  Ints order = axes;
  Shape shape = {1};
  for (int64_t axis : axes) shape[0] *= x.shape(axis);
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
    order.push_back(i);
    shape.push_back(x.shape(i));
  }
  return lax::reshape(lax::transpose(x, order), shape);
}

std::optional<Array> weights_for(const Array& a, const QuantileOptions& options) {
  if (!options.weights) return std::nullopt;
  Array weights = *options.weights;
  if (weights.shape() == a.shape()) return weights;
  if (options.axis.all()) throw ValueError("quantile: Weights shape must match 'a' shape when axis is None.");
  Ints axes;
  Shape expected;
  for (int64_t axis : options.axis.list()) {
    axes.push_back(canonical_axis("quantile", axis, a.ndim()));
    expected.push_back(a.shape(axes.back()));
  }
  if (weights.shape() != expected) {
    throw ValueError(concat("quantile: weights must have the shape of the reduced axes, got ",
                            to_string(weights.type()), " for ", to_string(a.type())));
  }
  return lax::broadcast_in_dim(weights, a.shape(), axes);
}

Samples gather_samples(const Array& a, const std::optional<Array>& weights, const QuantileOptions& options) {
  Samples samples;
  Ints axes = options.axis.resolve("quantile", a.ndim());
  if (!options.axis.single()) std::sort(axes.begin(), axes.end());
  samples.values = bring_to_front(a, axes);
  if (weights) samples.weights = bring_to_front(*weights, axes);
  samples.kept = a.shape();
  for (int64_t axis : axes) samples.kept[static_cast<std::size_t>(axis)] = 1;
  return samples;
}

// samples[at, rest...], where `at` has q's axes followed by the remaining ones.
Array read(const Array& samples, const Array& at) {
  const int64_t rest = samples.ndim() - 1;
  std::vector<Index> indices = {Index(at)};
  for (int64_t i = 0; i < rest; ++i) indices.emplace_back(steps::positions(at.shape(), at.ndim() - rest + i));
  return index(samples, indices);
}

Ints first_axes(int64_t count) {
  Ints axes;
  for (int64_t i = 0; i < count; ++i) axes.push_back(i);
  return axes;
}

// The sorted sample at which the cumulative weight reaches its share.
Array by_running_weight(const Samples& sorted, const Array& q, bool skip_nans, DType q_dtype) {
  const Array& values = sorted.values;
  const Array weights = sorted.weights ? *sorted.weights : lax::full_like(values, 1.0);
  const Array zero = lax::full_like(weights, 0);
  const Array is_less = lax::lt(weights, zero);
  const Array bad = lax::bitwise_or(is_less, isnan(weights));
  const Array nans = isnan(values);
  const Array running = cumsum(lax::select(lax::bitwise_or(bad, nans), zero, weights), {.axis = 0});
  const Array total = lax::index_in_dim(running, -1, 0, false);
  const Ints q_axes = first_axes(q.ndim());
  Shape q_shape = q.shape();
  q_shape.resize(q_shape.size() + total.shape().size(), 1);
  const Array reshaped = lax::reshape(q, q_shape);
  const Array target = lax::mul(reshaped, lax::expand_dims(total, q_axes));
  Ints behind_samples;
  for (int64_t i = 0; i < q.ndim(); ++i) behind_samples.push_back(i + 1);
  const Array expanded = lax::expand_dims(running, behind_samples);
  const Array below = lax::lt(expanded, lax::expand_dims(target, {0}));
  Array at = sum(below, {.axis = 0, .dtype = default_int()});
  const Array valid = skip_nans ? sum(lax::bitwise_not(nans), {.axis = 0, .dtype = q_dtype})
                                : lax::full(total.shape(), Array(values.shape(0)), q_dtype);
  const Array last = lax::convert_element_type(lax::sub(valid, 1), default_int());
  at = lax::max(steps::constant(at, 0), lax::min(at, lax::expand_dims(last, q_axes)));
  const Array result = read(values, broadcast_to("quantile", at, target.shape()));
  const Array lost = skip_nans ? lax::eq(valid, lax::full_like(valid, 0)) : any(nans, {.axis = 0});
  const Array undefined = lax::bitwise_or(any(bad, {.axis = 0}), lost);
  Array expanded_undefined = lax::expand_dims(undefined, q_axes);
  return numpy::where(expanded_undefined, lax::full_like(result, steps::nan), result);
}

Array quantile_of(const char* name, const Array& a, Array q, const QuantileOptions& options, bool skip_nans) {
  if (std::find(methods.begin(), methods.end(), options.method) == methods.end()) {
    throw ValueError(concat(name, ": method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or ",
                            "'inverted_cdf', got '", options.method, "'"));
  }
  if (options.weights && is_complex(options.weights->dtype())) {
    throw ValueError(concat(name, ": Weights cannot be complex types."));
  }
  if (options.weights && options.method != "inverted_cdf") {
    throw NotImplementedError(concat(name, ": method '", options.method,
                                     "' doesn't support weights. Only method 'inverted_cdf' supports weights."));
  }
  QuantileOptions own = options;
  Array x;
  if (options.weights) {
    const Arrays both = promote_dtypes_inexact({a, *options.weights});
    x = both[0];
    own.weights = both[1];
  } else {
    x = promote_inexact(name, a);
  }
  const std::optional<Array> weights = weights_for(x, own);
  if (is_complex(x.dtype())) {
    throw ValueError(concat(name, ": does not support complex input, as the operation is poorly defined; got ",
                            to_string(x.type())));
  }
  Samples samples = gather_samples(x, weights, options);
  if (q.ndim() > 1) throw ValueError(concat(name, ": q must have rank <= 1, got ", to_string(q.type())));

  const Array given_q = q;
  Array& values = samples.values;
  const Array nans = isnan(values);
  values = skip_nans ? numpy::where(nans, steps::nan, values)
                     : numpy::where(any(nans, {.axis = 0, .keepdims = true}), steps::nan, values);
  if (samples.weights) {
    std::tie(values, samples.weights) = lax::sort_key_val(values, *samples.weights, {.dimension = 0});
  } else {
    values = lax::sort(values, {.dimension = 0});
  }
  const Shape rest(values.shape().begin() + 1, values.shape().end());
  Array result;
  if (options.method == "inverted_cdf") {
    result = by_running_weight(samples, given_q, skip_nans, q.dtype());
  } else {
    // The two samples around each quantile, and the weight of the upper one.
    Array count;
    if (skip_nans) {
      count = sum(lax::bitwise_not(isnan(values)), {.axis = 0, .dtype = q.dtype()});
      Ints rest_axes;
      for (int64_t i = 0; i < static_cast<int64_t>(rest.size()); ++i) rest_axes.push_back(q.ndim() + i);
      q = lax::expand_dims(q, rest_axes);
      count = lax::expand_dims(count, first_axes(given_q.ndim()));
    } else {
      count = lax::convert_element_type(Array(values.shape(0)), q.dtype(), false);
    }
    const Array greatest = lax::sub(count, 1);
    q = lax::mul(q, greatest);
    const Array low = lax::floor(q), high = lax::ceil(q);
    Array high_share = lax::sub(q, low);
    Array low_share = lax::sub(1, high_share);
    auto value_at = [&](const Array& position) {
      const Array at = lax::max(steps::constant(position, 0), lax::min(position, greatest)).astype(default_int());
      return skip_nans ? read(values, at) : values(at);
    };
    const Array low_value = value_at(low), high_value = value_at(high);
    if (!skip_nans && q.ndim() == 1) {
      low_share = lax::broadcast_in_dim(low_share, low_value.shape(), {0});
      high_share = lax::broadcast_in_dim(high_share, high_value.shape(), {0});
    }
    if (options.method == "linear") {
      Array product = lax::mul(low_value.astype(q.dtype()), low_share);
      result = lax::add(product, lax::mul(high_value.astype(q.dtype()), high_share));
    } else if (options.method == "lower") {
      result = low_value;
    } else if (options.method == "higher") {
      result = high_value;
    } else if (options.method == "nearest") {
      result = lax::select(lax::le(high_share, steps::constant(high_share, 0.5)), low_value, high_value);
    } else {
      result = lax::mul(lax::add(low_value, high_value), steps::constant(low_value, 0.5));
    }
  }
  if (options.keepdims) {
    Shape shape = given_q.shape();
    shape.insert(shape.end(), samples.kept.begin(), samples.kept.end());
    result = lax::reshape(result, shape);
  }
  return lax::convert_element_type(result, x.dtype());
}

}  // namespace

Array quantile(const Array& a, const Array& q, const QuantileOptions& options) {
  return quantile_of("quantile", a, q, options, false);
}
Array nanquantile(const Array& a, const Array& q, const QuantileOptions& options) {
  return quantile_of("nanquantile", a, q, options, true);
}
Array percentile(const Array& a, const Array& q, const QuantileOptions& options) {
  return quantile(a, promote_inexact("percentile", q) / 100, options);
}
Array nanpercentile(const Array& a, const Array& q, const QuantileOptions& options) {
  return nanquantile(a, promote_inexact("nanpercentile", q) / 100, options);
}
Array median(const Array& a, const MedianOptions& options) {
  return quantile(a, 0.5, {.axis = options.axis, .method = "midpoint", .keepdims = options.keepdims});
}
Array nanmedian(const Array& a, const MedianOptions& options) {
  return nanquantile(a, 0.5, {.axis = options.axis, .method = "midpoint", .keepdims = options.keepdims});
}

}  // namespace capibara::jax::numpy
