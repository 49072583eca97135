// Table rows for jax.numpy: reductions and cumulative sums.
#include <capibara/numpy/reductions.h>

#include "library/table/families.h"
#include "library/table/named_axes.h"
#include "library/table/static_axis.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

numpy::SumOptions sum_options(const Arguments& a, bool promote_integers) {
  a.require_absent("out");
  return {.axis = a.axis("axis"),
          .dtype = a.optional_dtype("dtype"),
          .keepdims = a.flag("keepdims"),
          .initial = a.optional_array("initial"),
          .where = a.optional_array("where"),
          .promote_integers = promote_integers};
}

numpy::SumOptions nan_sum_options(const Arguments& a) {
  static_axis(a, "axis");
  return sum_options(a, true);
}

numpy::MaxOptions max_options(const Arguments& a) {
  a.require_absent("out");
  return {.axis = a.axis("axis"),
          .keepdims = a.flag("keepdims"),
          .initial = a.optional_array("initial"),
          .where = a.optional_array("where")};
}

numpy::MaxOptions nan_max_options(const Arguments& a) {
  static_axis(a, "axis");
  return max_options(a);
}

numpy::AnyOptions any_options(const Arguments& a) {
  a.require_absent("out");
  return {.axis = a.axis("axis"), .keepdims = a.flag("keepdims"), .where = a.optional_array("where")};
}

numpy::MeanOptions mean_options(const Arguments& a) {
  a.require_absent("out");
  return {.axis = a.axis("axis"),
          .dtype = a.optional_dtype("dtype"),
          .keepdims = a.flag("keepdims"),
          .where = a.optional_array("where")};
}

numpy::VarOptions var_options(const Arguments& a) {
  a.require_absent("out");
  return {.axis = a.axis("axis"),
          .dtype = a.optional_dtype("dtype"),
          .ddof = a.array("ddof"),
          .keepdims = a.flag("keepdims"),
          .where = a.optional_array("where"),
          .mean = a.optional_array("mean")};
}

numpy::VarOptions corrected_var_options(const Arguments& a) {
  numpy::VarOptions options = var_options(a);
  options.correction = a.optional_array("correction");
  return options;
}

numpy::VarOptions nan_var_options(const Arguments& a) {
  static_axis(a, "axis");
  return var_options(a);
}

numpy::CumulativeOptions cumulative_options(const Arguments& a) {
  a.require_absent("out");
  static_axis(a, "axis");
  return {.axis = a.optional_integer("axis"), .dtype = a.optional_dtype("dtype")};
}

numpy::CumulativeSumOptions cumulative_sum_options(const Arguments& a) {
  return {.axis = a.optional_integer("axis"),
          .dtype = a.optional_dtype("dtype"),
          .include_initial = a.flag("include_initial")};
}

// Rows whose functions also accept, or reject, axis names.
Value sum_row(const Arguments& a) { return numpy::sum(a.array("a"), sum_options(a, a.flag("promote_integers"))); }
Value prod_row(const Arguments& a) { return numpy::prod(a.array("a"), sum_options(a, a.flag("promote_integers"))); }
Value max_row(const Arguments& a) { return numpy::max(a.array("a"), max_options(a)); }
Value min_row(const Arguments& a) { return numpy::min(a.array("a"), max_options(a)); }
Value any_row(const Arguments& a) { return numpy::any(a.array("a"), any_options(a)); }
Value all_row(const Arguments& a) { return numpy::all(a.array("a"), any_options(a)); }
Value mean_row(const Arguments& a) { return numpy::mean(a.array("a"), mean_options(a)); }
Value var_row(const Arguments& a) { return numpy::var(a.array("a"), corrected_var_options(a)); }
Value std_row(const Arguments& a) { return numpy::std(a.array("a"), corrected_var_options(a)); }

const char* const sum_signature =
    "a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True";
const char* const nansum_signature = "a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None";
const char* const max_signature = "a, axis=None, out=None, keepdims=False, initial=None, where=None";
const char* const any_signature = "a, axis=None, out=None, keepdims=False, *, where=None";
const char* const var_signature =
    "a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None";
const char* const nanvar_signature =
    "a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None";
const char* const cumsum_signature = "a, axis: int = None, dtype=None, out=None";
const char* const cumulative_sum_signature = "x, /, *, axis: int = None, dtype=None, include_initial=False";

const Function numpy_reductions_functions[] = {
    {"sum", sum_signature, reduced_over_names<sum_row>, "The sum of the elements along axes."},
    {"prod", sum_signature, without_names<prod_row>, "The product of the elements along axes."},
    {"nansum", nansum_signature,
     [](const Arguments& a) -> Value { return numpy::nansum(a.array("a"), nan_sum_options(a)); },
     "The sum of the elements that are not NaN."},
    {"nanprod", nansum_signature,
     [](const Arguments& a) -> Value { return numpy::nanprod(a.array("a"), nan_sum_options(a)); },
     "The product of the elements that are not NaN."},
    {"max", max_signature, reduced_over_names<max_row>, "The largest element along axes; NaN where there is one."},
    {"min", max_signature, reduced_over_names<min_row>, "The least element along axes; NaN where there is one."},
    {"amax", max_signature, [](const Arguments& a) -> Value { return numpy::amax(a.array("a"), max_options(a)); },
     "Another name of max."},
    {"amin", max_signature, [](const Arguments& a) -> Value { return numpy::amin(a.array("a"), max_options(a)); },
     "Another name of min."},
    {"nanmax", max_signature,
     [](const Arguments& a) -> Value { return numpy::nanmax(a.array("a"), nan_max_options(a)); },
     "The largest element that is not NaN."},
    {"nanmin", max_signature,
     [](const Arguments& a) -> Value { return numpy::nanmin(a.array("a"), nan_max_options(a)); },
     "The least element that is not NaN."},
    {"any", any_signature, without_names<any_row>, "Whether any element along axes is true."},
    {"all", any_signature, without_names<all_row>, "Whether all elements along axes are true."},
    {"ptp", "a, axis=None, out=None, keepdims=False",
     [](const Arguments& a) -> Value {
       a.require_absent("out");
       return numpy::ptp(a.array("a"), {.axis = a.axis("axis"), .keepdims = a.flag("keepdims")});
     },
     "The largest minus the smallest element along axes."},
    {"count_nonzero", "a, axis=None, keepdims=False",
     [](const Arguments& a) -> Value {
       return numpy::count_nonzero(a.array("a"), {.axis = static_axis(a, "axis"), .keepdims = a.flag("keepdims")});
     },
     "The number of nonzero elements along axes."},
    {"mean", "a, axis=None, dtype=None, out=None, keepdims=False, *, where=None", reduced_over_names<mean_row>,
     "The mean along axes."},
    {"nanmean", "a, axis=None, dtype=None, out=None, keepdims=False, where=None",
     [](const Arguments& a) -> Value {
       static_axis(a, "axis");
       return numpy::nanmean(a.array("a"), mean_options(a));
     },
     "The mean of the elements that are not NaN."},
    {"var", var_signature, reduced_over_names<var_row>, "The variance along axes."},
    {"std", var_signature, reduced_over_names<std_row>, "The standard deviation along axes."},
    {"nanvar", nanvar_signature,
     [](const Arguments& a) -> Value { return numpy::nanvar(a.array("a"), nan_var_options(a)); },
     "The variance of the elements that are not NaN."},
    {"nanstd", nanvar_signature,
     [](const Arguments& a) -> Value { return numpy::nanstd(a.array("a"), nan_var_options(a)); },
     "The standard deviation of the elements that are not NaN."},
    {"average",
     "a, axis=None, weights=None, returned=False, keepdims=False -> tuple[Array, Array] if returned else Array",
     [](const Arguments& a) -> Value {
       const numpy::AverageOptions options{
           .axis = a.axis("axis"), .weights = a.optional_array("weights"), .keepdims = a.flag("keepdims")};
       if (a.flag("returned")) return numpy::average_and_weights(a.array("a"), options);
       return numpy::average(a.array("a"), options);
     },
     "The weighted mean along axes; with returned=True also the sum of the weights."},
    {"cumsum", cumsum_signature,
     [](const Arguments& a) -> Value { return numpy::cumsum(a.array("a"), cumulative_options(a)); },
     "The cumulative sum along an axis."},
    {"cumprod", cumsum_signature,
     [](const Arguments& a) -> Value { return numpy::cumprod(a.array("a"), cumulative_options(a)); },
     "The cumulative product along an axis."},
    {"nancumsum", cumsum_signature,
     [](const Arguments& a) -> Value { return numpy::nancumsum(a.array("a"), cumulative_options(a)); },
     "The cumulative sum, with NaNs as zeros."},
    {"nancumprod", cumsum_signature,
     [](const Arguments& a) -> Value { return numpy::nancumprod(a.array("a"), cumulative_options(a)); },
     "The cumulative product, with NaNs as ones."},
    {"cumulative_sum", cumulative_sum_signature,
     [](const Arguments& a) -> Value { return numpy::cumulative_sum(a.array("x"), cumulative_sum_options(a)); },
     "The cumulative sum in the array API's form, small integers widened."},
    {"cumulative_prod", cumulative_sum_signature,
     [](const Arguments& a) -> Value { return numpy::cumulative_prod(a.array("x"), cumulative_sum_options(a)); },
     "The cumulative product in the array API's form."},
};

}  // namespace

jax::numpy::Axis static_axis(const Arguments& a, const char* name) {
  const Sequence* sequence = a[name].sequence();
  if (sequence && sequence->is_list) {
    throw ValueError(concat(a.function(), ": Non-hashable static arguments are not supported: argument '", name,
                            "' must be an integer or a tuple of integers, got list"));
  }
  return a.axis(name);
}

Family numpy_reductions() { return numpy_reductions_functions; }

}  // namespace capibara::library
