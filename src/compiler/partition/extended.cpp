// Finds the dimensions that can be split with help, and implements the help.
#include "compiler/partition/extended.h"

#include <capibara/collective.h>
#include <capibara/lax.h>

#include <algorithm>

#include "lax/index/scatter.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/shape/shape.h"
#include "program/derive/values.h"
#include "program/ir/handles.h"

namespace capibara::sharding {

namespace lax = jax::lax;

namespace {

bool lists(const Ints& list, int64_t value) { return std::find(list.begin(), list.end(), value) != list.end(); }

// ---- factors -------------------------------------------------------------------------------------------------------

struct Extending {
  const EquationTypes& equation;
  ExtendedFactors out;

  // The only factor of a dimension if it must be whole; otherwise negative.
  int whole_factor(const DimensionFactors& dimension) const {
    if (dimension.size() != 1) return -1;
    const Factor& factor = out.factors.factors[static_cast<std::size_t>(dimension[0])];
    return factor.use == FactorUse::whole && factor.size > 0 ? dimension[0] : -1;
  }
  void allow(int factor, Help help, FactorUse use) {
    if (factor < 0) return;
    out.factors.factors[static_cast<std::size_t>(factor)].use = use;
    out.factors.factors[static_cast<std::size_t>(factor)].monoid = Monoid::add;
    out.helped[factor] = help;
  }

  void iota() {
    const auto dim = static_cast<std::size_t>(equation.attrs.integer("dimension"));
    allow(whole_factor(out.factors.results[0][dim]), Help::iota, FactorUse::free);
  }

  void gather() {
    const auto& dims = equation.attrs.get<GatherDimensionNumbers>("dimension_numbers");
    if (!is_numeric(equation.operands[0].dtype)) return;
    for (const int64_t d : dims.collapsed_slice_dims) {
      if (lists(dims.start_index_map, d))
        allow(whole_factor(out.factors.operands[0][static_cast<std::size_t>(d)]), Help::gather_rows,
              FactorUse::combined);
    }
  }

  void scatter() {
    const ScatterDimensionNumbers& dims = scatter_dims(equation.attrs);
    const std::size_t count = equation.results.size();
    for (const int64_t d : dims.inserted_window_dims) {
      const auto dim = static_cast<std::size_t>(d);
      const int first = whole_factor(out.factors.operands[0][dim]);
      if (first < 0 || !lists(dims.scatter_dims_to_operand_dims, d)) continue;
      allow(first, Help::scatter_rows, FactorUse::free);
      for (std::size_t n = 0; n < count; ++n)
        out.factors.operands[n][dim] = out.factors.results[n][dim] = DimensionFactors{first};
    }
    if (equation.primitive != prim::scatter_add() || !is_numeric(equation.operands[0].dtype)) return;
    const ArrayType &indices = equation.operands[count], &updates = equation.operands[count + 1];
    const Ints counts = other_dims(updates.rank(), dims.update_window_dims);
    for (int64_t d = 0; d + 1 < indices.rank(); ++d) {
      const int factor = whole_factor(out.factors.operands[count][static_cast<std::size_t>(d)]);
      if (factor < 0) continue;
      allow(factor, Help::scatter_updates, FactorUse::combined);
      for (std::size_t n = 0; n < count; ++n)
        out.factors.operands[count + 1 + n][static_cast<std::size_t>(counts[static_cast<std::size_t>(d)])] = {factor};
    }
  }

  void extreme() {
    const auto axis = static_cast<std::size_t>(equation.attrs.ints("axes")[0]);
    if (is_bool(equation.operands[0].dtype) || bits(equation.attrs.dtype("index_dtype")) < 32) return;
    allow(whole_factor(out.factors.operands[0][axis]), Help::extreme_index, FactorUse::combined);
  }

  void prefix() {
    const auto axis = static_cast<std::size_t>(equation.attrs.integer("axis"));
    const int factor = whole_factor(out.factors.operands[0][axis]);
    if (factor >= 0 && out.factors.results[0][axis] == DimensionFactors{factor})
      allow(factor, Help::prefix, FactorUse::free);
  }

  void windows() {
    for (const int factor : join_slid_dimensions(slid_dimensions(equation), equation, out.factors))
      out.helped[factor] = Help::window;
  }
};

// ---- on one device -------------------------------------------------------------------------------------------------

Array number(const Array& like, int64_t value) { return exact_scalar(like.dtype(), value); }
Array filled(const Array& like, int64_t value) { return lax::broadcast(number(like, value), like.shape()); }

// The additive identity, which preserves even the sign of a zero.
Array nothing_like(const Array& x) {
  const Array zeros = lax::zeros_like(x);
  return is_inexact(x.dtype()) ? lax::neg(zeros) : zeros;
}

// The start of this device's part along a factor.
Array offset_of(const Mesh& mesh, const Axes& axes, int64_t part, DType dtype) {
  const Array position = lax::convert_element_type(position_along(mesh, axes), dtype);
  return lax::mul(position, exact_scalar(dtype, part));
}

struct Helper {
  const Mesh& mesh;
  const EquationTypes& whole;
  const ExtendedFactors& extended;
  const Assignment& assignment;
  Arrays operands;
  Attrs attrs;
  std::vector<InsertedCollective>& noted;

  // Records a collective; `share` is the fraction of its bytes that each device receives from each other device.
  void note(const char* operation, const Axes& axes, const Array& operand, double share) const {
    const double bytes = static_cast<double>(operand.size()) * bits(operand.dtype()) / 8;
    const auto others = static_cast<double>(parts_of(mesh, axes) - 1);
    noted.push_back({operation, names_of(mesh, axes), operand.type(), bytes * share * others, 1, {}, {}});
  }
  void note_extreme(const char* operation, const Axes& axes, const Array& operand) const {
    note(operation, axes, operand, 2.0 / static_cast<double>(parts_of(mesh, axes)));
  }

  Axes axes_of_help(Help help) const {
    Axes axes;
    for (const auto& [factor, own] : extended.helped) {
      if (own != help) continue;
      const Axes& more = assignment.axes[static_cast<std::size_t>(factor)];
      axes.insert(axes.end(), more.begin(), more.end());
    }
    return axes;
  }
  // The axes of a dimension of operand 0 that is split with help.
  Axes axes_at(int64_t dim) const {
    const DimensionFactors& dimension = extended.factors.operands[0][static_cast<std::size_t>(dim)];
    if (dimension.size() != 1 || !extended.helped.count(dimension[0])) return {};
    return assignment.axes[static_cast<std::size_t>(dimension[0])];
  }

  Arrays iota() const {
    const auto dim = static_cast<std::size_t>(whole.attrs.integer("dimension"));
    // Floats are rounded once, after the addition.
    const DType dtype = whole.results[0].dtype, counted = is_inexact(dtype) ? DType::int32 : dtype;
    const Array own = capibara::bind(whole.primitive, operands, attrs.with("dtype", counted))[0];
    const Array offset = offset_of(mesh, axes_of_help(Help::iota), own.shape()[dim], counted);
    return {lax::convert_element_type(lax::add(own, lax::broadcast(offset, own.shape())), dtype)};
  }

  // One component of indices [..., n] for parts of a dimension: which are in this part, and their positions in it.
  struct Component {
    Array inside;    // bool[...]
    Array beyond;    // bool[...]: in no part
    Array position;  // within the part, where inside
    int64_t part;    // the size of the part
  };
  Component component(const Array& indices, int64_t k, int64_t size, const Axes& axes, bool clip) const {
    const int64_t last = indices.ndim() - 1;
    Array index = lax::index_in_dim(indices, k, last, false);
    if (is_integer(index.dtype()) && bits(index.dtype()) < 32) index = lax::convert_element_type(index, DType::int32);
    const DType dtype = is_signed(index.dtype())    ? index.dtype()
                        : bits(index.dtype()) == 32 ? DType::int32
                                                    : DType::int64;
    Array beyond = lax::ge(index, filled(index, size));
    if (dtype == index.dtype()) {
      const Array below = lax::lt(index, filled(index, 0));
      beyond = lax::bitwise_or(beyond, below);
    }
    if (clip) {
      index = lax::clamp(number(index, 0), index, number(index, size - 1));
      beyond = lax::broadcast(Array(false), index.shape());
    }
    index = lax::convert_element_type(index, dtype);
    const int64_t part = size / parts_of(mesh, axes);
    const Array offset = offset_of(mesh, axes, part, dtype);
    const Array position = lax::sub(index, lax::broadcast(offset, index.shape()));
    const Array from_start = lax::ge(position, filled(position, 0));
    const Array to_end = lax::lt(position, filled(position, part));
    const Array near = lax::bitwise_and(from_start, to_end);
    return {lax::bitwise_and(near, lax::bitwise_not(beyond)), beyond, position, part};
  }
  static Array with_component(const Array& indices, int64_t k, const Array& component) {
    const int64_t last = indices.ndim() - 1;
    Arrays parts;
    for (int64_t i = 0; i < indices.shape(last); ++i) {
      const Array own = i == k ? component : lax::index_in_dim(indices, i, last, false);
      parts.push_back(lax::convert_element_type(own, component.dtype()));
    }
    return lax::stack(parts, last);
  }

  // For mode clip: clips indices along the dimensions that are whole here, so that slices are within the operand.
  Array with_slices_inside(Array indices, const Ints& indexed, const Ints& slices) const {
    for (std::size_t k = 0; k < indexed.size(); ++k) {
      const auto dim = static_cast<std::size_t>(indexed[k]);
      if (!axes_at(indexed[k]).empty()) continue;
      const auto place = static_cast<int64_t>(k);
      Array index = lax::index_in_dim(indices, place, indices.ndim() - 1, false);
      if (bits(index.dtype()) < 32) index = lax::convert_element_type(index, DType::int32);
      const int64_t greatest = whole.operands[0].shape[dim] - slices[dim];
      indices = with_component(indices, place, lax::clamp(number(index, 0), index, number(index, greatest)));
    }
    return indices;
  }
  // The sizes of a scatter's slices, per dimension of its operand.
  Ints update_slices(const ScatterDimensionNumbers& dims) const {
    const ArrayType &operand = whole.operands[0], &updates = whole.operands[whole.results.size() + 1];
    Ints slices(operand.shape.size(), 1);
    auto window = dims.update_window_dims.begin();
    for (int64_t d = 0; d < operand.rank(); ++d) {
      if (lists(dims.inserted_window_dims, d) || lists(dims.operand_batching_dims, d)) continue;
      slices[static_cast<std::size_t>(d)] = updates.shape[static_cast<std::size_t>(*window++)];
    }
    return slices;
  }

  Arrays gather() {
    const auto& dims = whole.attrs.get<GatherDimensionNumbers>("dimension_numbers");
    const bool fills = whole.attrs.text("mode") == "fill_or_drop";
    if (!fills) operands[1] = with_slices_inside(operands[1], dims.start_index_map, whole.attrs.ints("slice_sizes"));
    Array ours;
    for (std::size_t k = 0; k < dims.start_index_map.size(); ++k) {
      const int64_t dim = dims.start_index_map[k];
      const Axes axes = axes_at(dim);
      if (axes.empty()) continue;
      const int64_t size = whole.operands[0].shape[static_cast<std::size_t>(dim)];
      const Component own = component(operands[1], static_cast<int64_t>(k), size, axes, !fills);
      const Array inside_or_start = lax::select(own.inside, own.position, filled(own.position, 0));
      // An index in no part stays out of bounds, so that the gather fills.
      const Array index = lax::select(own.beyond, filled(own.position, own.part), inside_or_start);
      operands[1] = with_component(operands[1], static_cast<int64_t>(k), index);
      const Array is_first = lax::eq(position_along(mesh, axes), exact_scalar(DType::int32, 0));
      const Array fill_here = lax::bitwise_and(own.beyond, lax::broadcast(is_first, own.beyond.shape()));
      const Array counts = lax::bitwise_or(own.inside, fill_here);
      ours = ours.defined() ? lax::bitwise_and(ours, counts) : counts;
    }
    const Attrs unordered = attrs.with("unique_indices", false).with("indices_are_sorted", false);
    const Array rows = capibara::bind(whole.primitive, operands, unordered)[0];
    const Ints counts = other_dims(rows.ndim(), dims.offset_dims);
    const Array mask = lax::broadcast_in_dim(ours, rows.shape(), counts);
    return {lax::select(mask, rows, nothing_like(rows))};
  }

  Arrays scatter() {
    const ScatterDimensionNumbers& dims = scatter_dims(whole.attrs);
    const std::size_t count = whole.results.size();
    const bool clips = whole.attrs.text("mode") == "clip";
    Attrs own_attrs = attrs;
    const bool by_rows = !axes_of_help(Help::scatter_rows).empty();
    if (by_rows && clips)
      operands[count] = with_slices_inside(operands[count], dims.scatter_dims_to_operand_dims, update_slices(dims));
    for (std::size_t k = 0; k < dims.scatter_dims_to_operand_dims.size(); ++k) {
      const int64_t dim = dims.scatter_dims_to_operand_dims[k];
      const Axes axes = axes_at(dim);
      if (axes.empty()) continue;
      const int64_t size = whole.operands[0].shape[static_cast<std::size_t>(dim)];
      const Component own = component(operands[count], static_cast<int64_t>(k), size, axes, clips);
      const Array index = lax::select(own.inside, own.position, filled(own.position, own.part));
      operands[count] = with_component(operands[count], static_cast<int64_t>(k), index);
    }
    if (by_rows) own_attrs = own_attrs.with("mode", "fill_or_drop").with("indices_are_sorted", false);
    const Axes adds = axes_of_help(Help::scatter_updates);
    if (!adds.empty()) {
      const Array is_first = lax::eq(position_along(mesh, adds), exact_scalar(DType::int32, 0));
      for (std::size_t n = 0; n < count; ++n)
        operands[n] =
            lax::select(lax::broadcast(is_first, operands[n].shape()), operands[n], nothing_like(operands[n]));
    }
    return capibara::bind(whole.primitive, operands, own_attrs);
  }

  // The extreme element wins, NaN before numbers; of equal ones the first.
  Arrays extreme() const {
    const bool highest = whole.primitive == prim::argmax();
    const int64_t axis = whole.attrs.ints("axes")[0];
    const Axes axes = axes_of_help(Help::extreme_index);
    const AxisList names = names_of(mesh, axes);
    const lax::ReduceOptions along{.axes = {axis}};
    const Array own = highest ? lax::reduce_max(operands[0], along) : lax::reduce_min(operands[0], along);
    const Array best = highest ? lax::pmax(own, names) : lax::pmin(own, names);
    note_extreme(highest ? "pmax" : "pmin", axes, own);
    const Array place = capibara::bind(whole.primitive, operands, attrs)[0];
    const Array offset = offset_of(mesh, axes, operands[0].shape(axis), place.dtype());
    const Array index = lax::add(place, lax::broadcast(offset, place.shape()));
    const Array is_equal = lax::eq(own, best), is_nan = lax::ne(own, own);
    const Array wins = lax::bitwise_or(is_equal, is_nan);
    const int64_t size = whole.operands[0].shape[static_cast<std::size_t>(axis)];
    note_extreme("pmin", axes, index);
    return {lax::pmin(lax::select(wins, index, filled(index, size)), names)};
  }

  Arrays prefix() const {
    const int64_t axis = whole.attrs.integer("axis");
    const bool reverse = whole.attrs.boolean("reverse");
    const Axes axes = axes_of_help(Help::prefix);
    const Array own = capibara::bind(whole.primitive, operands, attrs)[0];
    const int64_t size = own.shape(axis), parts = parts_of(mesh, axes);
    const Array total =
        reverse ? lax::slice_in_dim(own, 0, 1, 1, axis) : lax::slice_in_dim(own, size - 1, size, 1, axis);
    note("all_gather", axes, total, 1);
    const Array totals = lax::all_gather(total, names_of(mesh, axes), {});  // [parts, ..., 1, ...]
    const Monoid monoid = *whole.primitive->traits.monoid;
    const Array number_of = lax::broadcasted_iota(DType::int32, totals.shape(), 0);
    const Array here = lax::broadcast(position_along(mesh, axes), totals.shape());
    const Array before = reverse ? lax::gt(number_of, here) : lax::lt(number_of, here);
    const Array nothing = lax::broadcast(identity_element(monoid, own.dtype()), totals.shape());
    const Array counted = lax::select(before, totals, nothing);
    Array sum = lax::index_in_dim(counted, 0, 0, false);
    for (int64_t i = 1; i < parts; ++i) sum = combined(monoid, sum, lax::index_in_dim(counted, i, 0, false));
    Ints kept(static_cast<std::size_t>(own.ndim()));
    for (std::size_t d = 0; d < kept.size(); ++d) kept[d] = static_cast<int64_t>(d);
    return {combined(monoid, lax::broadcast_in_dim(sum, own.shape(), kept), own)};
  }

  Arrays windows() {
    const Monoid monoid = whole.primitive->traits.monoid.value_or(Monoid::add);
    const Array nothing = identity_element(monoid, operands[0].dtype());
    std::vector<SlidDimension> bordered;
    for (const SlidDimension& slid : slid_dimensions(whole)) {
      const int factor = extended.factors.results[0][slid.result][0];
      const Axes& axes = assignment.axes[static_cast<std::size_t>(factor)];
      if (axes.empty()) continue;
      operands[0] = with_borders(mesh, axes, slid, operands[0], nothing, noted);
      bordered.push_back(slid);
    }
    return capibara::bind(whole.primitive, operands, without_padding(attrs, bordered));
  }
  static Array combined(Monoid monoid, const Array& a, const Array& b) {
    switch (monoid) {
      case Monoid::add:
        return lax::add(a, b);
      case Monoid::mul:
        return lax::mul(a, b);
      case Monoid::max:
        return lax::max(a, b);
      default:
        return lax::min(a, b);
    }
  }
};

bool is_prefix_operation(const EquationTypes& equation) {
  return equation.primitive->traits.combines == Combines::prefixes && equation.primitive->traits.monoid &&
         equation.operands.size() == 1 && equation.attrs.has("axis");
}

bool is_scatter(const Primitive& primitive) {
  return primitive->traits.combines == Combines::updates || primitive == prim::scatter();
}

}  // namespace

ExtendedFactors extended_factors(const EquationTypes& equation) {
  Extending extending{equation, {factors_of(equation), {}}};
  const Primitive& primitive = equation.primitive;
  if (primitive == prim::iota()) extending.iota();
  if (primitive == prim::gather()) extending.gather();
  if (is_scatter(primitive) && equation.attrs.has("dimension_numbers")) extending.scatter();
  if (primitive == prim::argmax() || primitive == prim::argmin()) extending.extreme();
  if (is_prefix_operation(equation)) extending.prefix();
  extending.windows();
  return std::move(extending.out);
}

bool needs_help(const ExtendedFactors& extended, const Assignment& assignment) {
  return std::any_of(extended.helped.begin(), extended.helped.end(), [&](const auto& entry) {
    return !assignment.axes[static_cast<std::size_t>(entry.first)].empty();
  });
}

Arrays helped_results(const Mesh& mesh, const EquationTypes& whole, const ExtendedFactors& extended,
                      const Assignment& assignment, Arrays operands, const Attrs& local_attrs,
                      std::vector<InsertedCollective>& noted) {
  Helper helper{mesh, whole, extended, assignment, std::move(operands), local_attrs, noted};
  if (!slid_dimensions(whole).empty()) return helper.windows();
  if (whole.primitive == prim::iota()) return helper.iota();
  if (whole.primitive == prim::gather()) return helper.gather();
  if (whole.primitive == prim::argmax() || whole.primitive == prim::argmin()) return helper.extreme();
  return is_prefix_operation(whole) ? helper.prefix() : helper.scatter();
}

}  // namespace capibara::sharding
