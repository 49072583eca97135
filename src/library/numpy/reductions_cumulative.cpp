// jax.numpy: cumulative sums and products.
#include <capibara/numpy/reductions.h>

#include <capibara/numpy/elementwise.h>

#include "lax/operators/promote.h"
#include "library/numpy/reductions.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

using namespace reductions;

using Scan = Array (*)(const Array&, const lax::CumulativeOptions&);

struct Accumulation {
  const char* name;
  Scan scan;
  std::optional<double> nan_as = {};
  bool promote_integers = false;
};

Array accumulate(const Accumulation& how, Array a, const std::optional<int64_t>& axis,
                 const std::optional<DType>& dtype) {
  if (!axis || (a.ndim() == 0 && a.weak_type())) a = lax::reshape(a, {a.size()});
  const int64_t along = canonical_axis(how.name, axis.value_or(0), a.ndim());
  if (how.nan_as) a = numpy::where(isnan(a), steps::constant(a, *how.nan_as), a);
  DType result = a.dtype();
  if (dtype)
    result = *dtype;
  else if (how.promote_integers || is_bool(result))
    result = widened_integer(result);
  if (is_bool(result) && !is_bool(a.dtype())) a = lax::ne(a, steps::constant(a, 0));
  // Booleans are counted; a nonzero count is their cumulative sum.
  const DType computation = is_bool(result) ? default_int() : result;
  return lax::convert_element_type(how.scan(lax::convert_element_type(a, computation), {.axis = along}), result);
}

Array accumulate_array(const Accumulation& how, const Array& x, const CumulativeSumOptions& options, int initial) {
  if (x.ndim() == 0)
    throw ValueError(concat("The input must be non-scalar to take a cumulative reduction: ", how.name, " got ",
                            to_string(x.type())));
  if (!options.axis && x.ndim() > 1) {
    throw ValueError(concat("The input array has rank ", x.ndim(), ", however ", how.name,
                            ": argument 'axis' is only optional for arrays of rank 1"));
  }
  const int64_t axis = canonical_axis(how.name, options.axis.value_or(0), x.ndim());
  const Array result = accumulate(how, x, axis, options.dtype);
  if (!options.include_initial) return result;
  Shape edge = x.shape();
  edge[static_cast<std::size_t>(axis)] = 1;
  return lax::concatenate({lax::full(edge, Array(initial), result.dtype()), result}, axis);
}

}  // namespace

Array cumsum(const Array& a, const CumulativeOptions& options) {
  return accumulate({"cumsum", lax::cumsum, {}}, a, options.axis, options.dtype);
}
Array cumprod(const Array& a, const CumulativeOptions& options) {
  return accumulate({"cumprod", lax::cumprod, {}}, a, options.axis, options.dtype);
}
Array nancumsum(const Array& a, const CumulativeOptions& options) {
  return accumulate({"nancumsum", lax::cumsum, 0.0}, a, options.axis, options.dtype);
}
Array nancumprod(const Array& a, const CumulativeOptions& options) {
  return accumulate({"nancumprod", lax::cumprod, 1.0}, a, options.axis, options.dtype);
}
Array cumulative_sum(const Array& x, const CumulativeSumOptions& options) {
  return accumulate_array({"cumulative_sum", lax::cumsum, {}, true}, x, options, 0);
}
Array cumulative_prod(const Array& x, const CumulativeSumOptions& options) {
  return accumulate_array({"cumulative_prod", lax::cumprod, {}}, x, options, 1);
}

}  // namespace capibara::jax::numpy
