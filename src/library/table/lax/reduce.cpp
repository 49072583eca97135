// Table rows for jax.lax: reductions, windows, cumulative reductions and sorting.
#include <capibara/lax.h>

#include "lax/reduce/monoid.h"
#include "library/table/families.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace lax = jax::lax;

namespace {

using Reduction = Array (*)(const Array&, const lax::ReduceOptions&);

template <Reduction function>
Value reduction(const Arguments& a) {
  return function(a.array("operand"), {.axes = integer_sequence(a, "axes")});
}

template <Array (*function)(const Array&, const lax::CumulativeOptions&)>
Value cumulative(const Arguments& a) {
  return function(a.array("operand"), {.axis = a.integer("axis"), .reverse = a.flag("reverse")});
}

template <std::pair<Array, Array> (*function)(const Array&, int64_t, const lax::ApproxTopKOptions&)>
Value approximate(const Arguments& a) {
  const auto [values, positions] =
      function(a.array("operand"), a.integer("k"),
               {.reduction_dimension = a.integer("reduction_dimension"),
                .recall_target = a.real("recall_target"),
                .reduction_input_size_override = a.integer("reduction_input_size_override"),
                .aggregate_to_topk = a.flag("aggregate_to_topk")});
  return Arrays{values, positions};
}

// ---- reductions by a user function --------------------------------------------------------------------------------

// Operands and their initial values: one array each, or equally many in sequences.
struct Reduced {
  Arrays operands, init_values;
  bool single = true;
  bool is_list = false;
  lax::Computation computation;
};

Arrays leaves_of(const Arguments& a, const Value& value) {
  if (!value.sequence()) return {leaf_array(a, value)};
  Arrays leaves;
  for (const Value& item : value.sequence()->items) leaves.push_back(leaf_array(a, item));
  return leaves;
}

Reduced reduced(const Arguments& a, const char* operand_name, const char* init_name) {
  const Value &operands = a[operand_name], &init_values = a[init_name];
  Reduced result;
  result.operands = leaves_of(a, operands);
  result.init_values = leaves_of(a, init_values);
  result.single = !operands.sequence();
  result.is_list = !result.single && operands.sequence()->is_list;
  const bool same_structure = result.single == !init_values.sequence();
  if (!same_structure || result.operands.size() != result.init_values.size()) {
    throw ValueError(concat(
        "lax.", a.function(), ": Operands must have the same tree structure as init_values: ", operands.type_name(),
        " of ", result.operands.size(), " and ", init_values.type_name(), " of ", result.init_values.size()));
  }
  if (result.operands.empty()) throw ValueError(concat("lax.", a.function(), " must have at least one operand."));
  result.computation = [function = a.callable("computation"), called = a.function(), single = result.single,
                        is_list = result.is_list](const Arrays& x, const Arrays& y) -> Arrays {
    if (single) {
      const Value out = function({Value(x[0]), Value(y[0])});
      if (out.sequence()) {
        throw ValueError(concat(called,
                                " output must have the same tree structure as the operands: expected one array, ",
                                "got ", out.type_name()));
      }
      return {array_of(out, called.c_str())};
    }
    auto packed = [&](const Arrays& all) { return is_list ? Value::list_of(all) : Value::tuple_of(all); };
    const Value out = function({packed(x), packed(y)});
    if (!out.sequence()) {
      throw ValueError(concat(called, " output must have the same tree structure as the operands: expected ", x.size(),
                              " arrays, got ", out.type_name()));
    }
    Arrays results;
    for (const Value& item : out.sequence()->items) results.push_back(array_of(item, called.c_str()));
    return results;
  };
  return result;
}

// The named reduction equivalent to the function, if the initial value is its identity.
std::optional<Monoid> monoid_of(const Arguments& a, const Reduced& all) {
  if (!all.single || all.init_values[0].is_tracer() || all.init_values[0].ndim() != 0) return std::nullopt;
  const ArrayType type = scalar_type(all.init_values[0].dtype());
  const Program region = stage_region(
      a.function(), [&](std::span<const Array> in) { return all.computation({in[0]}, {in[1]}); }, {type, type});
  const std::optional<Monoid> monoid = recognise_monoid(region);
  if (!monoid || !is_identity_element(*monoid, all.init_values[0])) return std::nullopt;
  return monoid;
}

void require_matching_init(const Arguments& a, const Reduced& all) {
  for (std::size_t i = 0; i < all.operands.size(); ++i) {
    if (all.operands[i].dtype() == all.init_values[i].dtype()) continue;
    throw TypeError(concat("lax.", a.function(),
                           ": operand dtypes should match corresponding initial value dtypes, got ",
                           to_string(all.operands[i].type()), " and ", to_string(all.init_values[i].type())));
  }
}

Value packed(const Reduced& all, const Arrays& results) {
  if (all.single) return results[0];
  return all.is_list ? Value::list_of(results) : Value::tuple_of(results);
}

Value reduce(const Arguments& a) {
  static const std::pair<Monoid, Reduction> named[] = {
      {Monoid::add, lax::reduce_sum},    {Monoid::mul, lax::reduce_prod},    {Monoid::max, lax::reduce_max},
      {Monoid::min, lax::reduce_min},    {Monoid::bit_and, lax::reduce_and}, {Monoid::bit_or, lax::reduce_or},
      {Monoid::bit_xor, lax::reduce_xor}};
  a.require_absent("out_sharding");
  const Reduced all = reduced(a, "operands", "init_values");
  const Ints dimensions = integer_sequence(a, "dimensions");
  if (std::optional<Monoid> monoid = monoid_of(a, all)) {
    for (const auto& [known, function] : named) {
      if (known != *monoid) continue;
      const Array out = function(all.operands[0], {.axes = dimensions});
      const bool weak = all.operands[0].weak_type() && all.init_values[0].weak_type();
      return lax::convert_element_type(out, out.dtype(), weak);
    }
  }
  require_matching_init(a, all);
  return packed(all, lax::reduce(all.operands, all.init_values, all.computation, dimensions));
}

Value reduce_window(const Arguments& a) {
  const Reduced all = reduced(a, "operand", "init_value");
  const PaddingArgument padding = padding_argument(a, "padding");
  const Ints window = integer_sequence(a, "window_dimensions");
  const lax::WindowOptions options{.strides = optional_integer_sequence(a, "window_strides"),
                                   .padding_mode = padding.mode,
                                   .padding = padding.pairs,
                                   .base_dilation = optional_integer_sequence(a, "base_dilation"),
                                   .window_dilation = optional_integer_sequence(a, "window_dilation")};
  if (std::optional<Monoid> monoid = monoid_of(a, all)) {
    const Array& x = all.operands[0];
    if (*monoid == Monoid::add) return lax::reduce_window_sum(x, window, options);
    if (*monoid == Monoid::max) return lax::reduce_window_max(x, window, options);
    if (*monoid == Monoid::min) return lax::reduce_window_min(x, window, options);
  }
  require_matching_init(a, all);
  return packed(all, lax::reduce_window(all.operands, all.init_values, all.computation, window, options));
}

// ---- windows -----------------------------------------------------------------------------------------------------

Value padtype_to_pads(const Arguments& a) {
  const lax::Padding pads = lax::padtype_to_pads(integer_sequence(a, "in_shape"), integer_sequence(a, "window_shape"),
                                                 integer_sequence(a, "window_strides"), a.text("padding"));
  return Value::list_of(Values(pads.begin(), pads.end()));
}

Value reduce_window_shape_tuple(const Arguments& a) {
  const PaddingArgument padding = padding_argument(a, "padding");
  if (!padding.pairs) throw ValueError("lax.reduce_window_shape_tuple: argument 'padding' must be pairs of integers");
  return Value::tuple_of(lax::reduce_window_shape_tuple(
      integer_sequence(a, "operand_shape"), integer_sequence(a, "window_dimensions"),
      integer_sequence(a, "window_strides"), *padding.pairs, optional_integer_sequence(a, "base_dilation"),
      optional_integer_sequence(a, "window_dilation")));
}

// ---- sorting -----------------------------------------------------------------------------------------------------

Value sort(const Arguments& a) {
  const lax::SortOptions options{
      .dimension = a.integer("dimension"), .is_stable = a.flag("is_stable"), .num_keys = a.integer("num_keys")};
  if (a["operand"].sequence()) return Value::tuple_of(lax::sort(a.arrays("operand"), options));
  return lax::sort(a.array("operand"), options);
}

void require_index_dtype(DType dtype) {
  if (!is_integer(dtype)) throw TypeError(concat("index_dtype must be an integer type, but got ", dtype_name(dtype)));
}

const Function lax_reduce_functions[] = {
    {"reduce_sum", "operand, axes, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return reduction<lax::reduce_sum>(a);
     },
     "The sum over axes."},
    {"reduce_prod", "operand, axes", reduction<lax::reduce_prod>, "The product over axes."},
    {"reduce_max", "operand, axes", reduction<lax::reduce_max>, "The maximum over axes."},
    {"reduce_min", "operand, axes", reduction<lax::reduce_min>, "The minimum over axes."},
    {"reduce_and", "operand, axes", reduction<lax::reduce_and>, "The bits set everywhere along axes."},
    {"reduce_or", "operand, axes", reduction<lax::reduce_or>, "The bits set anywhere along axes."},
    {"reduce_xor", "operand, axes", reduction<lax::reduce_xor>, "The bits set an odd number of times along axes."},
    {"argmax", "operand, axis, index_dtype",
     [](const Arguments& a) -> Value {
       const DType dtype = a.dtype("index_dtype");
       require_index_dtype(dtype);
       return lax::argmax(a.array("operand"), a.integer("axis"), dtype);
     },
     "The first position of the maximum along an axis."},
    {"argmin", "operand, axis, index_dtype",
     [](const Arguments& a) -> Value {
       const DType dtype = a.dtype("index_dtype");
       require_index_dtype(dtype);
       return lax::argmin(a.array("operand"), a.integer("axis"), dtype);
     },
     "The first position of the minimum along an axis."},
    {"reduce", "operands: PyTree, init_values, computation, dimensions, out_sharding=None -> PyTree", reduce,
     "Combines elements along dimensions by an associative function."},
    {"reduce_window",
     "operand: PyTree, init_value, computation, window_dimensions, window_strides=None, padding='VALID', "
     "base_dilation=None, window_dilation=None -> PyTree",
     reduce_window, "Combines the elements of each window by an associative function."},
    {"reduce_window_shape_tuple",
     "operand_shape, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None -> "
     "tuple[int, ...]",
     reduce_window_shape_tuple, "The shape of what reduce_window returns."},
    {"padtype_to_pads", "in_shape, window_shape, window_strides, padding -> list[tuple[int, int]]", padtype_to_pads,
     "The pairs of paddings for VALID, SAME or SAME_LOWER."},
    {"cumsum", "operand, axis=0, reverse=False", cumulative<lax::cumsum>, "The cumulative sum along an axis."},
    {"cumprod", "operand, axis=0, reverse=False", cumulative<lax::cumprod>, "The cumulative product along an axis."},
    {"cummax", "operand, axis=0, reverse=False", cumulative<lax::cummax>, "The cumulative maximum along an axis."},
    {"cummin", "operand, axis=0, reverse=False", cumulative<lax::cummin>, "The cumulative minimum along an axis."},
    {"cumlogsumexp", "operand, axis=0, reverse=False", cumulative<lax::cumlogsumexp>,
     "The cumulative log(sum(exp)) along an axis."},
    {"sort",
     "operand: ArrayLike | Sequence[ArrayLike], dimension=-1, is_stable=True, num_keys=1 -> Array if "
     "isinstance(operand, ArrayLike) else tuple[Array, ...]",
     sort, "Sorts along a dimension; of several arrays the first num_keys decide, and all are reordered."},
    {"sort_key_val", "keys, values, dimension=-1, is_stable=True -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return lax::sort_key_val(a.array("keys"), a.array("values"),
                                {.dimension = a.integer("dimension"), .is_stable = a.flag("is_stable")});
     },
     "Sorts keys along a dimension and reorders values with them."},
    {"top_k", "operand, k, *, axis=-1 -> list[Array]",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       if (x.ndim() == 0) throw ValueError("lax.top_k: axis is out of range for an array of rank 0 (argument 'axis')");
       const auto [values, positions] = lax::top_k(x, a.integer("k"), a.integer("axis"));
       return Arrays{values, positions};
     },
     "The k largest elements along an axis and their positions."},
    {"approx_max_k",
     "operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True "
     "-> list[Array]",
     approximate<lax::approx_max_k>, "The k largest elements, approximately on some devices."},
    {"approx_min_k",
     "operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True "
     "-> list[Array]",
     approximate<lax::approx_min_k>, "The k least elements, approximately on some devices."},
};

}  // namespace

Family lax_reduce() { return lax_reduce_functions; }

}  // namespace capibara::library
