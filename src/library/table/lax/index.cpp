// Table rows for jax.lax: slices, gather and scatter.
#include <capibara/lax.h>

#include "library/table/families.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace lax = jax::lax;

namespace {

// One start per dimension: a sequence of numbers, or a vector.
Arrays start_indices(const Arguments& a, const Array& x) {
  const Value& value = a["start_indices"];
  const Array* vector = value.array();
  if (vector && vector->ndim() > 0 && vector->shape(0) == x.ndim() && vector->ndim() != 1) {
    throw ValueError(
        concat("lax.", a.function(), ": start_indices must be a 1D sequence, got ", to_string(vector->type())));
  }
  const Arrays starts = a.arrays("start_indices");
  if (static_cast<int64_t>(starts.size()) != x.ndim()) {
    throw ValueError(concat("lax.", a.function(), ": start_indices must have one entry per dimension of ",
                            to_string(x.type()), ", got ", starts.size()));
  }
  for (const Array& start : starts) {
    if (start.dtype() == starts[0].dtype()) continue;
    throw TypeError(concat("index arguments to ", a.function(), " must be integers of the same type, got: ",
                           dtype_name(starts[0].dtype()), " and ", dtype_name(start.dtype())));
  }
  return starts;
}

std::vector<bool> allow_negative(const Arguments& a, const Array& x) {
  const Value& value = a["allow_negative_indices"];
  if (!value.sequence()) return std::vector<bool>(static_cast<std::size_t>(x.ndim()), a.flag("allow_negative_indices"));
  std::vector<bool> flags;
  for (int64_t flag : a.ints("allow_negative_indices")) flags.push_back(flag != 0);
  flags.resize(static_cast<std::size_t>(x.ndim()), true);
  return flags;
}

Value gather(const Arguments& a) {
  std::vector<Ints> numbers = integer_tuples(a, "dimension_numbers", 3, 5);
  return lax::gather(a.array("operand"), a.array("start_indices"),
                     {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]}, a.shape("slice_sizes"),
                     {.unique_indices = a.flag("unique_indices"),
                      .indices_are_sorted = a.flag("indices_are_sorted"),
                      .mode = gather_scatter_mode(a, "mode"),
                      .fill_value = a.optional_array("fill_value")});
}

ScatterDimensionNumbers scatter_numbers(const Arguments& a) {
  std::vector<Ints> numbers = integer_tuples(a, "dimension_numbers", 3, 5);
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

lax::ScatterOptions scatter_options(const Arguments& a) {
  return {.indices_are_sorted = a.flag("indices_are_sorted"),
          .unique_indices = a.flag("unique_indices"),
          .mode = gather_scatter_mode(a, "mode")};
}

using Scatter = Array (*)(const Array&, const Array&, const Array&, const ScatterDimensionNumbers&,
                          const lax::ScatterOptions&);

template <Scatter function>
Value scatter(const Arguments& a) {
  const Array x = a.array("operand"), updates = a.array("updates");
  require_same_dtypes(a, {x, updates});
  return function(x, a.array("scatter_indices"), updates, scatter_numbers(a), scatter_options(a));
}

constexpr const char* scatter_signature =
    "operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False, unique_indices=False, "
    "mode=None";

const Function lax_index_functions[] = {
    {"slice", "operand, start_indices: Sequence[int], limit_indices, strides=None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       const Ints starts = integer_sequence(a, "start_indices");
       if (static_cast<int64_t>(starts.size()) != x.ndim()) {
         throw ValueError(concat("lax.slice: start_indices must have one entry per dimension of ", to_string(x.type()),
                                 ", got ", starts.size()));
       }
       return lax::slice(x, starts, integer_sequence(a, "limit_indices"), optional_integer_sequence(a, "strides"));
     },
     "A rectangular part of an array, with static bounds."},
    {"slice_in_dim", "operand, start_index: int | None, limit_index: int | None, stride=1, axis=0",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       return lax::slice_in_dim(x, a.optional_integer("start_index"), a.optional_integer("limit_index"),
                                a.integer("stride"), indexed_axis(a, "axis", x));
     },
     "A slice along one axis; negative bounds count from the end."},
    {"index_in_dim", "operand, index: int, axis=0, keepdims=True",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       return lax::index_in_dim(x, a.integer("index"), indexed_axis(a, "axis", x), a.flag("keepdims"));
     },
     "One position along an axis."},
    {"dynamic_slice", "operand, start_indices, slice_sizes, *, allow_negative_indices: bool | Sequence[bool] = True",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       return lax::dynamic_slice(x, start_indices(a, x), a.shape("slice_sizes"), allow_negative(a, x));
     },
     "A slice of static size at a computed position, clamped to stay in bounds."},
    {"dynamic_slice_in_dim", "operand, start_index, slice_size, axis=0, *, allow_negative_indices=True",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       return lax::dynamic_slice_in_dim(x, a.array("start_index"), a.integer("slice_size"), indexed_axis(a, "axis", x),
                                        a.flag("allow_negative_indices"));
     },
     "dynamic_slice along one axis."},
    {"dynamic_index_in_dim", "operand, index, axis=0, keepdims=True, *, allow_negative_indices=True",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       return lax::dynamic_index_in_dim(x, a.array("index"), indexed_axis(a, "axis", x), a.flag("keepdims"),
                                        a.flag("allow_negative_indices"));
     },
     "One computed position along an axis."},
    {"dynamic_update_slice", "operand, update, start_indices, *, allow_negative_indices: bool | Sequence[bool] = True",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand"), update = a.array("update");
       require_same_dtypes(a, {x, update});
       return lax::dynamic_update_slice(x, update, start_indices(a, x), allow_negative(a, x));
     },
     "The array with a slice replaced at a computed position."},
    {"dynamic_update_slice_in_dim", "operand, update, start_index, axis, *, allow_negative_indices=True",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand"), update = a.array("update");
       require_same_dtypes(a, {x, update});
       return lax::dynamic_update_slice_in_dim(x, update, a.array("start_index"), indexed_axis(a, "axis", x),
                                               a.flag("allow_negative_indices"));
     },
     "dynamic_update_slice along one axis."},
    {"dynamic_update_index_in_dim", "operand, update, index, axis, *, allow_negative_indices=True",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand"), update = a.array("update");
       require_same_dtypes(a, {x, update});
       return lax::dynamic_update_index_in_dim(x, update, a.array("index"), indexed_axis(a, "axis", x),
                                               a.flag("allow_negative_indices"));
     },
     "The array with one computed position along an axis replaced."},
    {"index_take", "src, idxs, axes",
     [](const Arguments& a) -> Value {
       return lax::index_take(a.array("src"), a.arrays("idxs"), integer_sequence(a, "axes"));
     },
     "The elements at vectors of positions along several axes."},
    {"gather",
     "operand, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers, slice_sizes, *, "
     "unique_indices=False, indices_are_sorted=False, mode=None, fill_value=None",
     gather, "Slices of a static size at computed positions."},
    {"scatter", scatter_signature, scatter<lax::scatter>, "The array with slices at computed positions replaced."},
    {"scatter_add", scatter_signature, scatter<lax::scatter_add>,
     "The array with updates added at computed positions."},
    {"scatter_sub", scatter_signature, scatter<lax::scatter_sub>,
     "The array with updates subtracted at computed positions."},
    {"scatter_mul", scatter_signature, scatter<lax::scatter_mul>,
     "The array multiplied by updates at computed positions."},
    {"scatter_min", scatter_signature, scatter<lax::scatter_min>,
     "The array with the minimum of its elements and updates at computed positions."},
    {"scatter_max", scatter_signature, scatter<lax::scatter_max>,
     "The array with the maximum of its elements and updates at computed positions."},
    {"scatter_apply",
     "operand, scatter_indices, func, dimension_numbers, *, update_shape: Shape = (), indices_are_sorted=False, "
     "unique_indices=False, mode=None",
     [](const Arguments& a) -> Value {
       const Callable function = a.callable("func");
       return lax::scatter_apply(
           a.array("operand"), a.array("scatter_indices"),
           [&](const Array& x) { return array_of(function({Value(x)}), "scatter_apply"); }, scatter_numbers(a),
           a.shape("update_shape"), scatter_options(a));
     },
     "The array with a function applied at computed positions."},
};

}  // namespace

Family lax_index() { return lax_index_functions; }

}  // namespace capibara::library
