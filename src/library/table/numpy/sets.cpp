// Table rows for jax.numpy: set functions.
#include <capibara/numpy/sets.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

numpy::SizeOptions size_options(const Arguments& a) {
  return {.size = a.optional_integer("size"), .fill_value = a.optional_array("fill_value")};
}

numpy::SetOptions set_options(const Arguments& a) {
  return {.assume_unique = a.flag("assume_unique"),
          .size = a.optional_integer("size"),
          .fill_value = a.optional_array("fill_value")};
}

const char* const set_signature = "ar1, ar2, assume_unique=False, *, size=None, fill_value=None";

const Function numpy_sets_functions[] = {
    {"unique",
     "ar, return_index=False, return_inverse=False, return_counts=False, axis: int = None, *, equal_nan=True, "
     "size=None, fill_value=None, sorted=True -> tuple[Array, ...] if return_index or return_inverse or return_counts "
     "else Array",
     [](const Arguments& a) -> Value {
       const numpy::UniqueResult result = numpy::unique(a.array("ar"), {.return_index = a.flag("return_index"),
                                                                        .return_inverse = a.flag("return_inverse"),
                                                                        .return_counts = a.flag("return_counts"),
                                                                        .axis = a.optional_integer("axis"),
                                                                        .equal_nan = a.flag("equal_nan"),
                                                                        .size = a.optional_integer("size"),
                                                                        .fill_value = a.optional_array("fill_value")});
       Values all = {result.values};
       for (const Array& more : {result.indices, result.inverse_indices, result.counts}) {
         if (more.defined()) all.push_back(more);
       }
       return all.size() == 1 ? all[0] : Value::tuple_of(std::move(all));
     },
     "The sorted distinct elements, or slices along an axis."},
    {"unique_all", "x, /, *, size=None, fill_value=None -> _UniqueAllResult(values, indices, inverse_indices, counts)",
     [](const Arguments& a) -> Value {
       const numpy::UniqueResult r = numpy::unique_all(a.array("x"), size_options(a));
       return Value::named_tuple("_UniqueAllResult", {"values", "indices", "inverse_indices", "counts"},
                                 {r.values, r.indices, r.inverse_indices, r.counts});
     },
     "The distinct elements, their first positions, the inverse and the counts."},
    {"unique_counts", "x, /, *, size=None, fill_value=None -> _UniqueCountsResult(values, counts)",
     [](const Arguments& a) -> Value {
       const numpy::UniqueResult r = numpy::unique_counts(a.array("x"), size_options(a));
       return Value::named_tuple("_UniqueCountsResult", {"values", "counts"}, {r.values, r.counts});
     },
     "The distinct elements and how often each occurs."},
    {"unique_inverse", "x, /, *, size=None, fill_value=None -> _UniqueInverseResult(values, inverse_indices)",
     [](const Arguments& a) -> Value {
       const numpy::UniqueResult r = numpy::unique_inverse(a.array("x"), size_options(a));
       return Value::named_tuple("_UniqueInverseResult", {"values", "inverse_indices"}, {r.values, r.inverse_indices});
     },
     "The distinct elements and the indices that rebuild the input from them."},
    {"unique_values", "x, /, *, size=None, fill_value=None",
     [](const Arguments& a) -> Value { return numpy::unique_values(a.array("x"), size_options(a)); },
     "The sorted distinct elements."},
    {"union1d", "ar1, ar2, *, size=None, fill_value=None",
     [](const Arguments& a) -> Value { return numpy::union1d(a.array("ar1"), a.array("ar2"), size_options(a)); },
     "The sorted elements that are in either array."},
    {"setdiff1d", set_signature,
     [](const Arguments& a) -> Value { return numpy::setdiff1d(a.array("ar1"), a.array("ar2"), set_options(a)); },
     "The sorted elements of the first array that are not in the second."},
    {"setxor1d", set_signature,
     [](const Arguments& a) -> Value { return numpy::setxor1d(a.array("ar1"), a.array("ar2"), set_options(a)); },
     "The sorted elements that are in exactly one of two arrays."},
    {"intersect1d",
     "ar1, ar2, assume_unique=False, return_indices=False, *, size=None, fill_value=None -> tuple[Array, Array, Array] "
     "if return_indices else Array",
     [](const Arguments& a) -> Value {
       const Array first = a.array("ar1"), second = a.array("ar2");
       if (!a.flag("return_indices")) return numpy::intersect1d(first, second, set_options(a));
       const numpy::Intersection r = numpy::intersect1d_with_indices(first, second, set_options(a));
       return Value::tuple_of(Arrays{r.values, r.indices1, r.indices2});
     },
     "The sorted elements that are in both arrays."},
    {"isin", "element, test_elements, assume_unique=False, invert=False, *, method='auto'",
     [](const Arguments& a) -> Value {
       return numpy::isin(
           a.array("element"), a.array("test_elements"),
           {.assume_unique = a.flag("assume_unique"), .invert = a.flag("invert"), .method = a.text("method")});
     },
     "Whether each element is among the test elements."},
};

}  // namespace

Family numpy_sets() { return numpy_sets_functions; }

}  // namespace capibara::library
