// Table rows for jax.numpy: indexing functions, choices, diagonals and bits.
#include <capibara/lax.h>
#include <capibara/numpy/indexing.h>

#include "lax/operators/promote.h"
#include "library/table/families.h"
#include "library/table/keywords.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

Value unravel_index(const Arguments& a) {
  const Array indices = a.array("indices");
  const Value& shape = a["shape"];
  if (const Array* array = shape.array(); array && array->ndim() > 0) {
    return Value::tuple_of(numpy::unravel_index(indices, jax::lax::unstack(*array)));
  }
  if (!shape.sequence()) return Value::tuple_of(numpy::unravel_index(indices, Arrays{a.array("shape")}));
  return Value::tuple_of(numpy::unravel_index(indices, a.arrays("shape")));
}

Value piecewise(const Arguments& a) {
  const Array x = a.array("x");
  const Value& conditions = a["condlist"];
  if (!conditions.sequence() && !conditions.array()) {
    throw TypeError(
        concat("piecewise: argument 'condlist' must be a sequence of conditions, got ", conditions.type_name()));
  }
  const Sequence* functions = a["funclist"].sequence();
  if (!functions)
    throw TypeError(concat("piecewise: argument 'funclist' must be a list, got ", a["funclist"].type_name()));
  std::vector<numpy::ElementFunction> branches;
  for (const Value& entry : functions->items) {
    if (const Callable* function = entry.get_if<Callable>()) {
      branches.push_back([&a, function](const Array& element) {
        return array_of((*function)(forwarded(a, {element}, "args", "kw")), "piecewise");
      });
    } else {
      branches.push_back([value = array_of(entry, "piecewise")](const Array&) { return value; });
    }
  }
  const Array condlist = jax::lax::convert_element_type(array_of(conditions, "piecewise"), DType::bool_, false);
  return numpy::piecewise(x, condlist, branches);
}

Value apply_along_axis(const Arguments& a) {
  const Callable function = a.callable("func1d");
  const Array x = a.array("arr");
  // Results may be nested: their arrays are passed in a list, and the nesting is restored.
  Value form;
  const std::function<Arrays(const Array&)> listed = [&](const Array& vector) {
    Arrays leaves;
    form = map_leaves(function(forwarded(a, {vector}, "args", "kwargs")), [&](const Value& leaf) -> Value {
      leaves.push_back(leaf_array(a, leaf));
      return true;
    });
    return leaves;
  };
  const Arrays results = numpy::apply_along_axis(listed, a.integer("axis"), x);
  std::size_t next = 0;
  return map_leaves(form, [&](const Value&) -> Value { return results[next++]; });
}

// Which diagonal bounds a triangle: a static argument in jax, so it cannot be traced.
int64_t diagonal(const Arguments& a) {
  if (const Array* k = a["k"].array(); k && k->is_tracer()) {
    throw ValueError(concat("Non-hashable static arguments are not supported: argument 'k' of ", a.function(),
                            " must be an integer, got a traced array of type ", to_string(k->type())));
  }
  return a.integer("k");
}

const Function numpy_indexing_functions[] = {
    // At indices.
    {"take",
     "a, indices, axis: int = None, out=None, mode=None, unique_indices=False, indices_are_sorted=False, "
     "fill_value=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out");
       return numpy::take(a.array("a"), a.array("indices"),
                          {.axis = a.optional_integer("axis"),
                           .mode = a.text("mode"),
                           .unique_indices = a.flag("unique_indices"),
                           .indices_are_sorted = a.flag("indices_are_sorted"),
                           .fill_value = a.optional_array("fill_value")});
     },
     "The slices at the indices along an axis; by default NaN or the least integer out of bounds."},
    {"take_along_axis",
     "arr, indices, axis: int | None = -1, mode=None, fill_value=None, *, wrap_negative_indices=None",
     [](const Arguments& a) -> Value {
       std::optional<bool> wrap;
       if (a.given("wrap_negative_indices")) wrap = a.flag("wrap_negative_indices");
       return numpy::take_along_axis(a.array("arr"), a.array("indices"),
                                     {.axis = a.optional_integer("axis"),
                                      .mode = a.text("mode"),
                                      .fill_value = a.optional_array("fill_value"),
                                      .wrap_negative_indices = wrap});
     },
     "One element per index along an axis, as argsort and argmax give them."},
    {"put", "a, ind, v, mode=None, *, inplace=True",
     [](const Arguments& a) -> Value {
       const bool inplace = a.flag("inplace");
       if (inplace) return numpy::put(0, 0, 0, {.inplace = true});
       return numpy::put(a.array("a"), a.array("ind"), a.array("v"), {.mode = a.text("mode"), .inplace = false});
     },
     "A copy with values at indices of the flattened array; needs inplace=False."},
    {"put_along_axis", "arr, indices, values, axis: int | None, inplace=True, *, mode=None",
     [](const Arguments& a) -> Value {
       return numpy::put_along_axis(a.array("arr"), a.array("indices"), a.array("values"), a.optional_integer("axis"),
                                    {.mode = a.text("mode"), .inplace = a.flag("inplace")});
     },
     "A copy with one value per index along an axis; needs inplace=False."},
    {"place", "arr, mask, vals, *, inplace=True",
     [](const Arguments& a) -> Value {
       return numpy::place(a.array("arr"), a.array("mask"), a.array("vals"), {.inplace = a.flag("inplace")});
     },
     "A copy with values, in order, where the mask is true; needs inplace=False."},
    {"ix_", "*args -> tuple[Array, ...]",
     [](const Arguments& a) -> Value { return Value::tuple_of(numpy::ix_(a.arrays("args"))); },
     "Vectors shaped so that they index an open grid."},
    {"unravel_index", "indices, shape -> tuple[Array, ...]", unravel_index,
     "The coordinates of indices of a flattened array."},
    {"ravel_multi_index", "multi_index, dims, mode='raise', order='C', *, dtype=None",
     [](const Arguments& a) -> Value {
       const Arrays indices = a.arrays("multi_index");
       return numpy::ravel_multi_index(
           indices, integer_sequence(a, "dims"),
           {.mode = a.text("mode"), .order = a.text("order"), .dtype = a.optional_dtype("dtype")});
     },
     "The index into a flattened array of given coordinates."},
    // By conditions and functions.
    {"choose", "a, choices, out=None, mode='raise'",
     [](const Arguments& a) -> Value {
       a.require_absent("out");
       return numpy::choose(a.array("a"), a.arrays("choices"), {.mode = a.text("mode")});
     },
     "At each position the element of the choice that the index selects."},
    {"select", "condlist, choicelist, default=0",
     [](const Arguments& a) -> Value {
       const Arrays conditions = a.arrays("condlist"), choices = a.arrays("choicelist");
       return numpy::select(conditions, choices, a.array("default"));
     },
     "At each position the element of the first choice whose condition holds."},
    {"piecewise", "x, condlist: ArrayLike | Sequence[ArrayLike], funclist, *args: Any, **kw", piecewise,
     "At each position the value of the last function whose condition holds, or a constant."},
    {"apply_along_axis", "func1d, axis, arr, *args: Any, **kwargs -> Any", apply_along_axis,
     "A function of vectors applied to every vector along an axis."},
    {"apply_over_axes", "func, a, axes",
     [](const Arguments& a) -> Value {
       const Callable function = a.callable("func");
       auto call = [&](const Array& x, int64_t axis) { return array_of(function({x, axis}), "apply_over_axes"); };
       return numpy::apply_over_axes(call, a.array("a"), integer_sequence(a, "axes"));
     },
     "A function of an array and an axis applied for one axis after the other."},
    // Diagonals and triangles.
    {"diag", "v, k=0", [](const Arguments& a) -> Value { return numpy::diag(a.array("v"), {.k = a.integer("k")}); },
     "A matrix with this diagonal, or the diagonal of a matrix."},
    {"diagflat", "v, k=0",
     [](const Arguments& a) -> Value { return numpy::diagflat(a.array("v"), {.k = a.integer("k")}); },
     "A matrix whose diagonal holds all elements."},
    {"diagonal", "a, offset=0, axis1=0, axis2=1",
     [](const Arguments& a) -> Value {
       return numpy::diagonal(
           a.array("a"), {.offset = a.integer("offset"), .axis1 = a.integer("axis1"), .axis2 = a.integer("axis2")});
     },
     "The diagonals of two axes, as the last axis."},
    {"trace", "a, offset: ArrayLike = 0, axis1=0, axis2=1, dtype=None, out=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out");
       return numpy::trace(a.array("a"), {.offset = a.array("offset"),
                                          .axis1 = a.integer("axis1"),
                                          .axis2 = a.integer("axis2"),
                                          .dtype = a.optional_dtype("dtype")});
     },
     "The sum over a diagonal."},
    {"diag_indices", "n, ndim=2 -> tuple[Array, ...]",
     [](const Arguments& a) -> Value {
       return Value::tuple_of(numpy::diag_indices(a.integer("n"), a.integer("ndim")));
     },
     "The indices of the main diagonal."},
    {"diag_indices_from", "arr -> tuple[Array, ...]",
     [](const Arguments& a) -> Value { return Value::tuple_of(numpy::diag_indices_from(a.array("arr"))); },
     "The indices of the main diagonal of an array."},
    {"tril", "m, k=0", [](const Arguments& a) -> Value { return numpy::tril(a.array("m"), {.k = diagonal(a)}); },
     "The lower triangle, zeros elsewhere."},
    {"triu", "m, k=0", [](const Arguments& a) -> Value { return numpy::triu(a.array("m"), {.k = diagonal(a)}); },
     "The upper triangle, zeros elsewhere."},
    {"tril_indices", "n, k=0, m: int = None -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return numpy::tril_indices(a.integer("n"), {.k = a.integer("k"), .m = a.optional_integer("m")});
     },
     "The indices of the lower triangle."},
    {"triu_indices", "n, k=0, m: int = None -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return numpy::triu_indices(a.integer("n"), {.k = a.integer("k"), .m = a.optional_integer("m")});
     },
     "The indices of the upper triangle."},
    {"tril_indices_from", "arr: Prototype, k=0 -> tuple[Array, Array]",
     [](const Arguments& a) -> Value { return numpy::tril_indices_from(a.array("arr"), {.k = a.integer("k")}); },
     "The indices of the lower triangle of a matrix."},
    {"triu_indices_from", "arr: Prototype, k=0 -> tuple[Array, Array]",
     [](const Arguments& a) -> Value { return numpy::triu_indices_from(a.array("arr"), {.k = a.integer("k")}); },
     "The indices of the upper triangle of a matrix."},
    {"mask_indices", "n, mask_func, k=0, *, size=None -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const Callable function = a.callable("mask_func");
       auto mask = [&](const Array& ones) { return array_of(function({ones, a["k"]}), "mask_indices"); };
       return numpy::mask_indices(a.integer("n"), mask, {.size = a.optional_integer("size")});
     },
     "The indices of an n x n array where a mask of ones is not zero."},
    {"fill_diagonal", "a, val, wrap=False, *, inplace=True",
     [](const Arguments& a) -> Value {
       if (a.flag("inplace")) return numpy::fill_diagonal(0, 0, {.inplace = true});
       return numpy::fill_diagonal(a.array("a"), a.array("val"), {.wrap = a.flag("wrap"), .inplace = false});
     },
     "A copy with another main diagonal; needs inplace=False."},
    // Bits.
    {"packbits", "a, axis: int = None, bitorder='big'",
     [](const Arguments& a) -> Value {
       return numpy::packbits(a.array("a"), {.axis = a.optional_integer("axis"), .bitorder = a.text("bitorder")});
     },
     "Packs groups of eight booleans into the bits of bytes."},
    {"unpackbits", "a, axis: int = None, count=None, bitorder='big'",
     [](const Arguments& a) -> Value {
       return numpy::unpackbits(
           a.array("a"),
           {.axis = a.optional_integer("axis"), .count = a.optional_integer("count"), .bitorder = a.text("bitorder")});
     },
     "The bits of each byte as zeros and ones."},
};

}  // namespace

Family numpy_indexing() { return numpy_indexing_functions; }

}  // namespace capibara::library
