// Table rows for jax.lax: collectives over named axes. They map over nested tuples and lists.
#include <capibara/lax.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/pcast.h>
#include <capibara/ragged.h>

#include "library/table/families.h"
#include "library/table/lax/arguments.h"
#include "program/trace/mesh_trace.h"

namespace capibara::library {

namespace lax = jax::lax;

namespace {

using NamedReduction = Array (*)(const Array&, const lax::AxisNames&, const lax::AxisGroups&);

int64_t lanes(const lax::AxisNames& names) {
  int64_t size = 1;
  for (const std::string& name : names) size *= lax::axis_size(name);
  return size;
}

// Plain numbers are the same on every lane: their sum is a plain number too.
std::optional<Value> sum_of_number(const Value& leaf, const lax::AxisNames& names) {
  if (const int64_t* integer = leaf.get_if<int64_t>()) return Value(*integer * lanes(names));
  if (const double* real = leaf.get_if<double>()) return Value(*real * static_cast<double>(lanes(names)));
  if (const auto* both = leaf.get_if<std::complex<double>>()) return Value(*both * static_cast<double>(lanes(names)));
  return std::nullopt;
}

// The contents of a reduction's `axis_name`: names, and positions of the operand's own axes.
struct ReducedAxes {
  lax::AxisNames names;
  Ints positions;

  explicit ReducedAxes(const Arguments& a) {
    const Value& value = a["axis_name"];
    const Sequence* sequence = value.sequence();
    for (const Value& item : sequence ? sequence->items : Values{value}) {
      if (const std::string* name = item.get_if<std::string>()) {
        names.push_back(*name);
      } else if (const int64_t* position = item.get_if<int64_t>()) {
        positions.push_back(*position);
      } else {
        throw TypeError(concat("lax.", a.function(),
                               ": argument 'axis_name' must be the name of an axis or a tuple of ",
                               "names and positions, got ", item.type_name()));
      }
    }
  }
  jax::numpy::Axis axis() const { return jax::numpy::Axis(positions); }
};

Value psum(const Arguments& a) {
  const ReducedAxes axes(a);
  const lax::AxisGroups groups = axis_groups(a);
  if (axes.names.empty() && axes.positions.empty()) return a["x"];
  return map_leaves(a["x"], [&](const Value& leaf) -> Value {
    if (groups.empty() && axes.positions.empty()) {
      if (std::optional<Value> known = sum_of_number(leaf, axes.names)) return *known;
    }
    Array x = leaf_array(a, leaf);
    if (is_bool(x.dtype())) x = lax::convert_element_type(x, DType::int32);
    if (!axes.positions.empty()) x = jax::numpy::sum(x, {.axis = axes.axis()});
    return axes.names.empty() ? x : lax::psum(x, axes.names, groups);
  });
}

Value pmean(const Arguments& a) {
  const ReducedAxes axes(a);
  const lax::AxisGroups groups = axis_groups(a);
  if (!axes.positions.empty()) throw ValueError("lax.pmean: argument 'axis_name' takes names of axes, not positions");
  return map_leaves(a["x"], [&](const Value& leaf) -> Value {
    const int64_t* integer = leaf.get_if<int64_t>();
    const bool known = groups.empty() && (integer || leaf.get_if<double>());
    if (known) {
      lanes(axes.names);
      return integer ? Value(static_cast<double>(*integer)) : leaf;
    }
    Array x = leaf_array(a, leaf);
    if (is_bool(x.dtype())) x = lax::convert_element_type(x, DType::int32);
    return lax::pmean(x, axes.names, groups);
  });
}

using Extreme = Array (*)(const Array&, const jax::numpy::MaxOptions&);

template <NamedReduction function, Extreme of_positions>
Value extreme(const Arguments& a) {
  const ReducedAxes axes(a);
  const lax::AxisGroups groups = axis_groups(a);
  return map_leaves(a["x"], [&](const Value& leaf) -> Value {
    Array x = leaf_array(a, leaf);
    if (!axes.positions.empty()) x = of_positions(x, {.axis = axes.axis()});
    return axes.names.empty() ? x : function(x, axes.names, groups);
  });
}

Value all_gather(const Arguments& a) {
  const lax::AxisNames names = axis_names(a);
  const std::string to = a.text("to");
  if (to != "varying" && to != "invarying" && to != "reduced") {
    throw ValueError(
        concat("Got unexpected `to` value for `jax.lax.all_gather`. Allowed `to` values are: {'varying', "
               "'invarying', 'reduced'}, got '",
               to, "'"));
  }
  const lax::AllGatherOptions options{
      .axis = a.integer("axis"), .tiled = a.flag("tiled"), .axis_index_groups = axis_groups(a)};
  return map_leaves(a["x"], [&](const Value& leaf) -> Value {
    const Array x = leaf_array(a, leaf);
    if (to == "varying") return lax::all_gather(x, names, options);
    if (!options.axis_index_groups.empty())
      throw NotImplementedError(concat("lax.all_gather: axis_index_groups are for to='varying', got to='", to, "'"));
    return to == "reduced" ? lax::all_gather_reduced(x, names, options) : lax::all_gather_invariant(x, names, options);
  });
}

Value psum_scatter(const Arguments& a) {
  const lax::AxisNames names = axis_names(a);
  const lax::PsumScatterOptions options{.scatter_dimension = a.integer("scatter_dimension"),
                                        .tiled = a.flag("tiled"),
                                        .axis_index_groups = axis_groups(a)};
  return map_leaves(a["x"],
                    [&](const Value& leaf) -> Value { return lax::psum_scatter(leaf_array(a, leaf), names, options); });
}

// Over several names, with lanes ordered by name: one exchange per name, each of its own part of the
// dimension.
Array exchange_over(const Array& x, const lax::AxisNames& names, int64_t split_axis, int64_t concat_axis, bool tiled) {
  if (split_axis < 0) split_axis += x.ndim();
  if (concat_axis < 0) concat_axis += x.ndim();
  const int64_t count = lanes(names);
  if (split_axis < 0 || split_axis >= x.ndim() ||
      (tiled ? x.shape(split_axis) % count != 0 : x.shape(split_axis) != count)) {
    throw ValueError(
        concat("all_to_all requires the size of the mapped axes to equal (or, tiled, to divide) dimension ", split_axis,
               " of ", to_string(x.type()), ", got axis size ", count));
  }
  Shape shape = x.shape();  // the dimension is split into one per name and the remainder
  auto at = shape.begin() + split_axis;
  *at /= count;
  if (!tiled) at = shape.erase(at);
  for (auto name = names.rbegin(); name != names.rend(); ++name) at = shape.insert(at, lax::axis_size(*name));
  Array result = lax::reshape(x, shape);
  for (std::size_t i = 0; i < names.size(); ++i) {  // the axes of source lanes accumulate in front
    result = lax::all_to_all(result, names[i], split_axis + static_cast<int64_t>(i), static_cast<int64_t>(i), {});
  }
  shape.assign(result.shape().begin() + static_cast<std::ptrdiff_t>(names.size()), result.shape().end());
  shape.insert(shape.begin(), count);
  result = jax::numpy::moveaxis(lax::reshape(result, shape), 0, concat_axis);
  if (!tiled) return result;
  shape = result.shape();
  shape[static_cast<std::size_t>(concat_axis)] *= shape[static_cast<std::size_t>(concat_axis) + 1];
  shape.erase(shape.begin() + concat_axis + 1);
  return lax::reshape(result, shape);
}

Value exchange(const Arguments& a, int64_t split_axis, int64_t concat_axis, bool tiled) {
  const Sequence* names = a["axis_name"].sequence();
  if (names && names->items.size() > 1 && are_mesh_axes(axis_names(a))) {
    const lax::AllToAllOptions options{.tiled = tiled, .axis_index_groups = axis_groups(a)};
    return map_leaves(a["x"], [&](const Value& leaf) -> Value {
      return lax::all_to_all(leaf_array(a, leaf), axis_names(a), split_axis, concat_axis, options);
    });
  }
  if (names && names->items.size() > 1 && axis_groups(a).empty()) {
    const ReducedAxes axes(a);
    if (!axes.positions.empty())
      throw TypeError("lax.all_to_all: argument 'axis_name' must hold names alone, got a position");
    return map_leaves(a["x"], [&](const Value& leaf) -> Value {
      return exchange_over(leaf_array(a, leaf), axes.names, split_axis, concat_axis, tiled);
    });
  }
  const std::string name = single_axis_name(a);
  const lax::AllToAllOptions options{.tiled = tiled, .axis_index_groups = axis_groups(a)};
  return map_leaves(a["x"], [&](const Value& leaf) -> Value {
    return lax::all_to_all(leaf_array(a, leaf), name, split_axis, concat_axis, options);
  });
}

const Function lax_collective_functions[] = {
    {"psum", "x, axis_name, *, axis_index_groups=None", psum, "The sum over named axes."},
    {"pmean", "x, axis_name, *, axis_index_groups=None", pmean, "The mean over named axes."},
    {"pmax", "x, axis_name, *, axis_index_groups=None", extreme<lax::pmax, jax::numpy::max>,
     "The maximum over named axes."},
    {"pmin", "x, axis_name, *, axis_index_groups=None", extreme<lax::pmin, jax::numpy::min>,
     "The minimum over named axes."},
    {"all_gather", "x, axis_name, *, axis_index_groups=None, axis=0, tiled=False, to='varying'", all_gather,
     "The values of all members of a named axis, stacked or concatenated."},
    {"psum_scatter", "x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False", psum_scatter,
     "The sum over a named axis, of which each member keeps its part."},
    {"all_to_all", "x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False",
     [](const Arguments& a) { return exchange(a, a.integer("split_axis"), a.integer("concat_axis"), a.flag("tiled")); },
     "Exchanges parts of one dimension among the members of a named axis."},
    {"pswapaxes", "x, axis_name, axis, *, axis_index_groups=None",
     [](const Arguments& a) { return exchange(a, a.integer("axis"), a.integer("axis"), false); },
     "Swaps a named axis with a positional one."},
    {"ppermute", "x, axis_name, perm",
     [](const Arguments& a) -> Value {
       const lax::AxisNames names = axis_names(a);
       const std::vector<std::pair<int64_t, int64_t>> perm = a.pairs("perm");
       return map_leaves(a["x"],
                         [&](const Value& leaf) -> Value { return lax::ppermute(leaf_array(a, leaf), names, perm); });
     },
     "Sends each member's value to another member; those that receive nothing get zeros."},
    {"pshuffle", "x, axis_name, perm",
     [](const Arguments& a) -> Value {
       const std::string name = single_axis_name(a);
       const Ints perm = integer_sequence(a, "perm");
       return map_leaves(a["x"],
                         [&](const Value& leaf) -> Value { return lax::pshuffle(leaf_array(a, leaf), name, perm); });
     },
     "Each member's value becomes that of the member that perm names for it."},
    {"pbroadcast", "x, axis_name, source",
     [](const Arguments& a) -> Value {
       const std::string name = single_axis_name(a);
       const int64_t source = a.integer("source");
       return map_leaves(
           a["x"], [&](const Value& leaf) -> Value { return lax::pbroadcast(leaf_array(a, leaf), name, source); });
     },
     "One member's value on every member of a named axis."},
    {"pcast", "x, axis_name, *, to",
     [](const Arguments& a) -> Value {
       const lax::AxisNames names = axis_names(a);
       const std::string to = a.text("to");
       return map_leaves(a["x"],
                         [&](const Value& leaf) -> Value { return lax::pcast(leaf_array(a, leaf), names, to); });
     },
     "The same value in a type that says otherwise along mesh axes: varying, unreduced or reduced."},
    {"ragged_all_to_all",
     "operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, *, axis_name, axis_index_groups=None",
     [](const Arguments& a) -> Value {
       return lax::ragged_all_to_all(
           a.array("operand"), a.array("output"),
           {a.array("input_offsets"), a.array("send_sizes"), a.array("output_offsets"), a.array("recv_sizes")},
           axis_names(a), axis_groups(a));
     },
     "The output with the slices of other members' operands written into it; their sizes are values."},
    {"axis_index", "axis_name",
     [](const Arguments& a) -> Value {
       if (a["axis_name"].get_if<std::string>()) return lax::axis_index(a.text("axis_name"));
       // Of several axes, the last one varies fastest.
       const lax::AxisNames names = axis_names(a);
       Array index = Array(0);
       int64_t inner = 1;
       for (auto name = names.rbegin(); name != names.rend(); ++name) {
         index = index + lax::axis_index(*name) * Array(inner);
         inner *= lax::axis_size(*name);
       }
       return index;
     },
     "The index of this member along named axes."},
    {"axis_size", "axis_name -> int", [](const Arguments& a) -> Value { return lanes(axis_names(a)); },
     "The number of members of named axes."},
};

}  // namespace

Family lax_collective() { return lax_collective_functions; }

}  // namespace capibara::library
