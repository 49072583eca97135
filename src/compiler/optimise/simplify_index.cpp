// Rules of gather and scatter with a single window: they become a slice read or written at a computed position.
//
//   b = gather[slice_sizes=(1, 4)] a i         ->    b = reshape (dynamic_slice a i 0)
//   b = scatter-add a i u                      ->    s = dynamic_slice a i 0; b = dynamic_update_slice a (s + u) i 0
//
// Slices fuse with their readers and are written in place, above all in loops; a gather or a scatter is a call.
#include "compiler/optimise/simplify.h"

#include <algorithm>

#include "lax/shape/shape.h"

namespace capibara::passes {

namespace {

using Result = std::optional<Atom>;
using jax::lax::GatherScatterMode;

bool holds(const Ints& list, int64_t value) { return std::find(list.begin(), list.end(), value) != list.end(); }

Atom integer(Site& site, DType dtype, int64_t value) {
  const auto narrow = static_cast<int32_t>(value);
  const void* bits = storage_size(dtype) == sizeof narrow ? static_cast<const void*>(&narrow) : &value;
  return site.simplifier.literal(Array::from_host(dtype, {}, bits));
}

bool is_wide_integer(DType dtype) {
  return dtype == DType::int32 || dtype == DType::int64 || dtype == DType::uint32 || dtype == DType::uint64;
}

// The start of the single window, one number per dimension of the operand.
struct Starts {
  std::vector<Atom> all;
  std::vector<std::pair<int64_t, Atom>> computed;  // dimension and start
};

Starts starts_of(Site& site, Atom indices, const Ints& dims, int64_t rank) {
  const ArrayType& type = site.simplifier.type(indices);
  const DType dtype = type.dtype;
  Starts starts;
  starts.all.assign(static_cast<std::size_t>(rank), integer(site, dtype, 0));
  const int64_t count = static_cast<int64_t>(dims.size());
  const Atom row = site.simplifier.add(prim::reshape(), {indices}, reshape_attrs({count}), site.source);
  for (int64_t i = 0; i < count; ++i) {
    const Attrs part = {{"start_indices", Ints{i}}, {"limit_indices", Ints{i + 1}}, {"strides", Attr()}};
    const Atom one = count == 1 ? row : site.simplifier.add(prim::slice(), {row}, part, site.source);
    const Atom start = site.simplifier.add(prim::reshape(), {one}, reshape_attrs({}), site.source);
    starts.all[static_cast<std::size_t>(dims[static_cast<std::size_t>(i)])] = start;
    starts.computed.emplace_back(dims[static_cast<std::size_t>(i)], start);
  }
  return starts;
}

// True if the whole window is in bounds, as a scalar.
Atom is_inside(Site& site, const Starts& starts, DType dtype, const Shape& shape, const Ints& window) {
  std::optional<Atom> all;
  auto demand = [&](Atom condition) {
    all = all ? site.simplifier.add(prim::and_(), {*all, condition}, {}, site.source) : condition;
  };
  for (const auto& [dim, start] : starts.computed) {
    const auto d = static_cast<std::size_t>(dim);
    const Atom least = integer(site, dtype, 0);
    demand(site.simplifier.add(prim::ge(), {start, least}, {}, site.source));
    const Atom greatest = integer(site, dtype, shape[d] - window[d]);
    demand(site.simplifier.add(prim::le(), {start, greatest}, {}, site.source));
  }
  return *all;
}

Atom slice_at(Site& site, Atom operand, const Starts& starts, const Ints& window) {
  std::vector<Atom> inputs = {operand};
  inputs.insert(inputs.end(), starts.all.begin(), starts.all.end());
  return site.simplifier.add(prim::dynamic_slice(), std::move(inputs), {{"slice_sizes", window}}, site.source);
}

bool has_one_window(const ArrayType& indices, const Ints& dims) {
  return is_wide_integer(indices.dtype) && !dims.empty() && indices.size() == static_cast<int64_t>(dims.size());
}

Result gather(Site& site) {
  const auto& numbers = site.attrs.get<GatherDimensionNumbers>("dimension_numbers");
  const Ints& window = site.attrs.ints("slice_sizes");
  const GatherScatterMode mode = mode_of(site.attrs);
  if (!has_one_window(site.type(1), numbers.start_index_map) || !numbers.operand_batching_dims.empty())
    return std::nullopt;
  if (mode != GatherScatterMode::clip && mode != GatherScatterMode::promise_in_bounds) return std::nullopt;
  const Starts starts = starts_of(site, site.inputs[1], numbers.start_index_map, site.type(0).rank());
  const Atom slice = slice_at(site, site.inputs[0], starts, window);
  return site.simplifier.add(prim::reshape(), {slice}, reshape_attrs(site.output_type().shape), site.source);
}

// The operation that combines old and new elements; null for a plain replacement.
const Primitive* joins(const Primitive& scatter) {
  if (scatter == prim::scatter_add()) return &prim::add();
  if (scatter == prim::scatter_sub()) return &prim::sub();
  return scatter == prim::scatter_mul() ? &prim::mul() : nullptr;
}

Result scatter(Site& site) {
  const Primitive* join = joins(site.primitive);
  if (site.inputs.size() != 3 || (!join && !site.attrs["update_jaxpr"].is_none())) return std::nullopt;
  const auto& numbers = site.attrs.get<ScatterDimensionNumbers>("dimension_numbers");
  const ArrayType &operand = site.type(0), &indices = site.type(1), &updates = site.type(2);
  if (!has_one_window(indices, numbers.scatter_dims_to_operand_dims) || !numbers.operand_batching_dims.empty())
    return std::nullopt;
  const GatherScatterMode mode = mode_of(site.attrs);
  if (mode == GatherScatterMode::one_hot || updates.size() == 0) return std::nullopt;
  Ints window;
  for (int64_t d = 0, next = 0; d < operand.rank(); ++d) {
    if (holds(numbers.inserted_window_dims, d))
      window.push_back(1);
    else
      window.push_back(
          updates.shape[static_cast<std::size_t>(numbers.update_window_dims[static_cast<std::size_t>(next++)])]);
  }
  const Shape shape = operand.shape;
  // For dimensions of size zero: no slice has the size of a window that fits nowhere and whose updates are all dropped.
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (window[d] > shape[d]) return std::nullopt;
  }
  const DType dtype = indices.dtype;
  const Starts starts =
      starts_of(site, site.inputs[1], numbers.scatter_dims_to_operand_dims, static_cast<int64_t>(shape.size()));
  Atom value = site.simplifier.add(prim::reshape(), {site.inputs[2]}, reshape_attrs(window), site.source);
  // Even if the program promises that none are out of bounds: jax's derivatives of scatter_min and scatter_max scatter
  // by the indices of updates that were dropped.
  const bool drops = mode != GatherScatterMode::clip;
  if (join || drops) {
    const Atom old = slice_at(site, site.inputs[0], starts, window);
    if (join) value = site.simplifier.add(*join, {old, value}, {}, site.source);
    if (drops) {
      const Atom inside = is_inside(site, starts, dtype, shape, window);
      value = site.simplifier.add(prim::select_n(), {inside, old, value}, {}, site.source);
    }
  }
  std::vector<Atom> inputs = {site.inputs[0], value};
  inputs.insert(inputs.end(), starts.all.begin(), starts.all.end());
  return site.simplifier.add(prim::dynamic_update_slice(), std::move(inputs), {}, site.source);
}

}  // namespace

void add_index_rules(Rules& rules) {
  rules.add(prim::gather(), gather);
  for (const Primitive& primitive : {prim::scatter(), prim::scatter_add(), prim::scatter_sub(), prim::scatter_mul()})
    rules.add(primitive, scatter);
}

}  // namespace capibara::passes
