// Table rows for jax.numpy: sorting and searching.
#include <capibara/numpy/sorting.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

numpy::ArgmaxOptions argmax_options(const Arguments& a) {
  a.require_absent("out");
  return {.axis = a.optional_integer("axis"), .keepdims = a.flag("keepdims")};
}

void refuse_numpy_sort_arguments(const Arguments& a) {
  if (a.given("kind")) {
    throw TypeError(concat("'kind' argument to ", a.function(),
                           " is not supported. Use stable=True or stable=False to specify sort stability."));
  }
  if (a.given("order")) throw TypeError(concat("'order' argument to ", a.function(), " is not supported."));
}

// None, one number for all dimensions, or a tuple with one per dimension.
numpy::NonzeroOptions nonzero_options(const Arguments& a, int64_t dimensions) {
  numpy::NonzeroOptions options{.size = a.optional_integer("size")};
  const Value& fill = a["fill_value"];
  if (fill.is_none()) return options;
  const Sequence* sequence = fill.sequence();
  if (!sequence) {
    options.fill_value = {a.array("fill_value")};
    return options;
  }
  if (sequence->is_list || static_cast<int64_t>(sequence->items.size()) != dimensions) {
    throw ValueError(concat(a.function(), ": fill_value must be a scalar or a tuple of length ", dimensions, "; got ",
                            sequence->is_list ? "list" : "tuple", " of length ", sequence->items.size()));
  }
  options.fill_value = a.arrays("fill_value");
  return options;
}

const char* const argmax_signature = "a, axis: int = None, out=None, keepdims=None";

const Function numpy_sorting_functions[] = {
    {"argmax", argmax_signature,
     [](const Arguments& a) -> Value { return numpy::argmax(a.array("a"), argmax_options(a)); },
     "The first position of the largest element."},
    {"argmin", argmax_signature,
     [](const Arguments& a) -> Value { return numpy::argmin(a.array("a"), argmax_options(a)); },
     "The first position of the least element."},
    {"nanargmax", argmax_signature,
     [](const Arguments& a) -> Value { return numpy::nanargmax(a.array("a"), argmax_options(a)); },
     "The first position of the largest element that is not NaN; -1 where all are."},
    {"nanargmin", argmax_signature,
     [](const Arguments& a) -> Value { return numpy::nanargmin(a.array("a"), argmax_options(a)); },
     "The first position of the least element that is not NaN; -1 where all are."},
    {"sort", "a, axis: int | None = -1, *, kind=None, order=None, stable=True, descending=False",
     [](const Arguments& a) -> Value {
       refuse_numpy_sort_arguments(a);
       return numpy::sort(
           a.array("a"),
           {.axis = a.optional_integer("axis"), .stable = a.flag("stable"), .descending = a.flag("descending")});
     },
     "The elements in ascending order along an axis, NaNs last."},
    {"argsort", "a, axis: int | None = -1, *, kind=None, order=None, stable=True, descending=False, dtype=None",
     [](const Arguments& a) -> Value {
       refuse_numpy_sort_arguments(a);
       return numpy::argsort(a.array("a"), {.axis = a.optional_integer("axis"),
                                            .stable = a.flag("stable"),
                                            .descending = a.flag("descending"),
                                            .dtype = a.optional_dtype("dtype")});
     },
     "The positions that sort an array along an axis."},
    {"lexsort", "keys: ArrayLike | Sequence[ArrayLike], axis=-1",
     [](const Arguments& a) -> Value { return numpy::lexsort(a.arrays("keys"), a.integer("axis")); },
     "The positions that sort by several keys, the last one first."},
    {"sort_complex", "a", [](const Arguments& a) -> Value { return numpy::sort_complex(a.array("a")); },
     "The sorted elements as complex numbers."},
    {"partition", "a, kth, axis=-1",
     [](const Arguments& a) -> Value { return numpy::partition(a.array("a"), a.integer("kth"), a.integer("axis")); },
     "The array with its kth element in sorted position, smaller ones before it, greater ones after it."},
    {"argpartition", "a, kth, axis=-1",
     [](const Arguments& a) -> Value { return numpy::argpartition(a.array("a"), a.integer("kth"), a.integer("axis")); },
     "The positions that partition an array around its kth element."},
    {"searchsorted", "a, v, side='left', sorter=None, *, method='scan'",
     [](const Arguments& a) -> Value {
       return numpy::searchsorted(
           a.array("a"), a.array("v"),
           {.side = a.text("side"), .sorter = a.optional_array("sorter"), .method = a.text("method")});
     },
     "Where values are to be inserted into a sorted vector."},
    {"digitize", "x, bins, right=False, *, method=None",
     [](const Arguments& a) -> Value {
       const std::string method = a.text("method");
       return numpy::digitize(a.array("x"), a.array("bins"),
                              {.right = a.flag("right"), .method = method.empty() ? "scan" : method});
     },
     "The bin that each value belongs to."},
    {"nonzero", "a, *, size=None, fill_value: ArrayLike | tuple[ArrayLike, ...] = None -> tuple[Array, ...]",
     [](const Arguments& a) -> Value {
       const Array x = a.array("a");
       return Value::tuple_of(numpy::nonzero(x, nonzero_options(a, x.ndim())));
     },
     "The positions of the elements that are not zero, one array for each dimension."},
    {"flatnonzero", "a, *, size=None, fill_value: ArrayLike | tuple[ArrayLike, ...] = None",
     [](const Arguments& a) -> Value { return numpy::flatnonzero(a.array("a"), nonzero_options(a, 1)); },
     "The positions of the elements that are not zero in the flattened array."},
    {"argwhere", "a, *, size=None, fill_value: ArrayLike | tuple[ArrayLike, ...] = None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("a");
       return numpy::argwhere(x, nonzero_options(a, std::max<int64_t>(x.ndim(), 1)));
     },
     "The positions of the elements that are not zero, one row for each."},
    {"extract", "condition, arr, *, size=None, fill_value=0",
     [](const Arguments& a) -> Value {
       return numpy::extract(a.array("condition"), a.array("arr"),
                             {.size = a.optional_integer("size"), .fill_value = a.array("fill_value")});
     },
     "The elements for which a condition holds."},
    {"compress", "condition, a, axis: int = None, *, size=None, fill_value=0, out=None",
     [](const Arguments& a) -> Value {
       const Array condition = a.array("condition"), x = a.array("a");
       a.require_absent("out");
       return numpy::compress(condition, x,
                              {.axis = a.optional_integer("axis"),
                               .size = a.optional_integer("size"),
                               .fill_value = a.array("fill_value")});
     },
     "The slices along an axis for which a condition holds."},
};

}  // namespace

Family numpy_sorting() { return numpy_sorting_functions; }

}  // namespace capibara::library
