// jax.numpy: covariances and correlations.
#include <capibara/numpy/statistics.h>

#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>

#include "lax/operators/promote.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

void require_inexact(const char* name, const std::optional<DType>& dtype) {
  if (dtype && !is_inexact(*dtype)) {
    throw ValueError(concat(name, ": dtype must be a subclass of float or complex; got dtype=", to_string(*dtype)));
  }
}

Array magnitude(const Array& x) { return is_unsigned(x.dtype()) || is_bool(x.dtype()) ? x : lax::abs(x); }

void require_sample_weights(const char* which, const Array& weights, int64_t samples) {
  if (weights.ndim() > 1) throw RuntimeError(concat("cov: cannot handle multidimensional ", which));
  if (weights.shape(0) != samples) {
    throw RuntimeError(
        concat("cov: incompatible numbers of samples and ", which, ": ", samples, " and ", weights.shape(0)));
  }
}

}  // namespace

Array cov(const Array& m, const CovOptions& options) {
  Array x, y;
  if (options.y) {
    const Arrays both = promote_args_inexact("cov", {m, *options.y});
    x = both[0];
    y = both[1];
    if (y.ndim() > 2) throw ValueError(concat("cov: y has more than 2 dimensions, got ", to_string(y.type())));
  } else {
    x = promote_inexact("cov", m);
  }
  if (x.ndim() > 2) throw ValueError(concat("cov: m has more than 2 dimensions, got ", to_string(x.type())));
  require_inexact("cov", options.dtype);
  const bool vector = x.ndim() == 1;
  x = atleast_2d(x);
  if (!options.rowvar && !vector) x = lax::transpose(x, {1, 0});
  if (x.shape(0) == 0) return lax::full({0, 0}, 0, default_float());
  if (y.defined()) {
    y = atleast_2d(y);
    if (!options.rowvar && y.shape(0) != 1) y = lax::transpose(y, {1, 0});
    x = concatenate({x, y});
  }
  const int64_t variables = x.shape(0), samples = x.shape(1);
  if (samples == 0) {
    return lax::full(variables == 1 ? Shape{} : Shape{variables, variables}, Array(steps::nan), x.dtype());
  }
  const int64_t ddof = options.ddof ? *options.ddof : options.bias ? 0 : 1;
  std::optional<Array> weights, importance;
  if (options.fweights) {
    require_sample_weights("fweights", *options.fweights, samples);
    if (!is_integer(options.fweights->dtype())) {
      throw TypeError(concat("cov: fweights must be integer, got ", to_string(options.fweights->type())));
    }
    weights = magnitude(*options.fweights);
  }
  if (options.aweights) {
    require_sample_weights("aweights", *options.aweights, samples);
    importance = magnitude(*options.aweights);
    weights = weights ? *weights * *importance : *importance;
  }
  if (options.dtype) {
    x = x.astype(*options.dtype);
    if (weights) weights = weights->astype(*options.dtype);
  }
  const auto [center, weight_sums] = average_and_weights(x, {.axis = 1, .weights = weights});
  const Array weight_sum = weight_sums(0);
  Array divisor;
  if (!weights)
    divisor = Array(samples - ddof);
  else if (ddof == 0)
    divisor = weight_sum;
  else if (!importance)
    divisor = weight_sum - Array(ddof);
  else
    divisor = weight_sum - Array(ddof) * sum(*weights * *importance) / weight_sum;
  x = x - lax::expand_dims(center, {1});
  const Array weighted = weights ? x * lax::broadcast_to_rank(*weights, 2) : x;
  const Array right = is_complex(weighted.dtype()) ? lax::conj(weighted) : weighted;
  const Arrays factors = promote_dtypes({x, lax::transpose(right, {1, 0})});
  const Array result = lax::dot(factors[0], factors[1]) / divisor;
  return variables == 1 ? lax::reshape(result, {}) : result;
}

Array corrcoef(const Array& x, const CorrcoefOptions& options) {
  require_inexact("corrcoef", options.dtype);
  Array c = cov(x, {.y = options.y, .rowvar = options.rowvar, .dtype = options.dtype});
  if (c.ndim() == 0) return c / c;
  const Array position = lax::iota(default_int(), c.shape(0));
  const Array variance = c(position, position);
  const Array deviation = lax::sqrt(is_complex(c.dtype()) ? lax::real(variance) : variance).astype(c.dtype());
  Array quotient = c / lax::expand_dims(deviation, {1});
  c = quotient / lax::expand_dims(deviation, {0});
  const ClipOptions unit{.min = Array(-1), .max = Array(1)};
  if (!is_complex(c.dtype())) return clip(c, unit);
  Array clipped = clip(lax::real(c), unit);
  return lax::complex(clipped, clip(lax::imag(c), unit));
}

}  // namespace capibara::jax::numpy
