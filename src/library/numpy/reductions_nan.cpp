// jax.numpy: the reductions that skip NaNs.
#include <capibara/numpy/reductions.h>

#include <capibara/numpy/elementwise.h>

#include "lax/operators/promote.h"
#include "library/numpy/reductions.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

using namespace reductions;

// Replaces NaNs by a value that does not affect the result.
Array filled(const Array& a, double value) {
  if (!is_inexact(a.dtype())) return a;
  const Array missing = isnan(a);
  return numpy::where(missing, identity_like(a, value), a);
}

Array nan_where_all_are(const Array& a, const MaxOptions& options, const Array& result) {
  if (!is_inexact(a.dtype()) || options.initial) return result;
  const Array nothing = all(isnan(a), {.axis = options.axis, .keepdims = options.keepdims});
  return numpy::where(nothing, steps::constant(a, steps::nan), result);
}

}  // namespace

Array nansum(const Array& a, const SumOptions& options) {
  checked_where("nansum", options.where);
  return sum(filled(a, 0), options);
}

Array nanprod(const Array& a, const SumOptions& options) {
  checked_where("nanprod", options.where);
  return prod(filled(a, 1), options);
}

Array nanmax(const Array& a, const MaxOptions& options) {
  checked_where("nanmax", options.where);
  return nan_where_all_are(a, options, max(filled(a, -steps::infinity), options));
}

Array nanmin(const Array& a, const MaxOptions& options) {
  checked_where("nanmin", options.where);
  return nan_where_all_are(a, options, min(filled(a, steps::infinity), options));
}

Array nanmean(const Array& a, const MeanOptions& options) {
  checked_where("nanmean", options.where);
  if (!is_inexact(a.dtype())) return mean(a, options);
  const SumOptions by{.axis = options.axis,
                      .dtype = options.dtype ? *options.dtype : a.dtype(),
                      .keepdims = options.keepdims,
                      .where = options.where};
  const Array count = sum(lax::bitwise_not(isnan(a)), by);
  return lax::div(nansum(a, by), count);
}

Array nanvar(const Array& a, const VarOptions& options) {
  checked_where("nanvar", options.where);
  const auto [computation, result] = variance_dtypes("nanvar", a.dtype(), options.dtype);
  const Array x = a.astype(computation);
  const Array center =
      options.mean ? options.mean->astype(computation)
                   : nanmean(x, {.axis = options.axis, .dtype = computation, .keepdims = true, .where = options.where});
  const Array is_nan = isnan(x);
  const Array squares = squared_magnitude(numpy::where(is_nan, 0, lax::sub(x, center)));
  const SumOptions by{.axis = options.axis, .keepdims = options.keepdims, .where = options.where};
  const Array count = sum(lax::bitwise_not(isnan(x)), by) - options.ddof;
  const Array too_few = lax::le(count, steps::constant(count, 0));
  const Array total = numpy::where(too_few, steps::nan, sum(squares, by));
  const Array divisor = numpy::where(too_few, 1, count);
  return lax::convert_element_type(lax::div(total, lax::convert_element_type(divisor, total.dtype())), result);
}

Array nanstd(const Array& a, const VarOptions& options) {
  checked_where("nanstd", options.where);
  return lax::sqrt(nanvar(a, options));
}

}  // namespace capibara::jax::numpy
