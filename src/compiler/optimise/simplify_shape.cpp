// Rules of operations that only move elements. reshape is the canonical form of order-preserving changes of shape.
#include "compiler/optimise/simplify.h"

#include <algorithm>
#include <numeric>

namespace capibara::passes {

namespace {

using Result = std::optional<Atom>;

Ints range(std::size_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

bool is_ascending(const Ints& list) { return std::is_sorted(list.begin(), list.end()); }

Shape without_ones(const Shape& shape) {
  Shape rest;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(rest), [](int64_t size) { return size != 1; });
  return rest;
}

Atom reshaped(Site& site, Atom x, const Shape& shape) {
  return site.simplifier.add(prim::reshape(), {x}, reshape_attrs(shape), site.source);
}

Result reshape(Site& site) {
  const Shape& shape = site.attrs.ints("new_sizes");
  if (!is_plain(site.attrs)) return std::nullopt;
  if (site.type(0).shape == shape) return site.inputs[0];
  const Equation* inner = site.simplifier.made_by(site.inputs[0], prim::reshape());
  if (inner && is_plain(inner->attrs)) return reshaped(site, inner->inputs[0], shape);
  inner = site.simplifier.made_by(site.inputs[0], prim::broadcast_in_dim());
  if (!inner || !is_plain(inner->attrs) || site.simplifier.type(inner->inputs[0]).rank() != 0) return std::nullopt;
  if (shape.empty()) return inner->inputs[0];
  return site.simplifier.add(prim::broadcast_in_dim(), {inner->inputs[0]}, broadcast_attrs(shape, {}), site.source);
}

Result squeeze(Site& site) { return reshaped(site, site.inputs[0], site.output_type().shape); }

Result broadcast(Site& site) {
  if (!is_plain(site.attrs)) return std::nullopt;
  const Shape& shape = site.attrs.ints("shape");
  const Ints& dims = site.attrs.ints("broadcast_dimensions");
  const Shape& from = site.type(0).shape;
  if (from == shape && dims == range(shape.size())) return site.inputs[0];
  // Only adds dimensions of size 1.
  if (!from.empty() && is_ascending(dims) && element_count(from) == element_count(shape) &&
      without_ones(from) == without_ones(shape)) {
    bool kept = true;
    for (std::size_t i = 0; i < from.size(); ++i) kept &= at(shape, dims[i]) == from[i];
    if (kept) return reshaped(site, site.inputs[0], shape);
  }
  if (const Equation* inner = site.simplifier.made_by(site.inputs[0], prim::broadcast_in_dim());
      inner && is_plain(inner->attrs)) {
    Ints joined;
    for (int64_t dim : inner->attrs.ints("broadcast_dimensions")) joined.push_back(at(dims, dim));
    return site.simplifier.add(site.primitive, {inner->inputs[0]}, broadcast_attrs(shape, joined), site.source);
  }
  if (const Equation* inner = site.simplifier.made_by(site.inputs[0], prim::reshape());
      inner && is_plain(inner->attrs)) {
    // A reshape that only inserted dimensions of size 1.
    Atom x = inner->inputs[0];
    const Shape& source = site.simplifier.type(x).shape;
    if (source != without_ones(from) || source.empty()) return std::nullopt;
    Ints kept;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] != 1) kept.push_back(dims[i]);
    }
    return site.simplifier.add(site.primitive, {x}, broadcast_attrs(shape, kept), site.source);
  }
  return std::nullopt;
}

Result transpose(Site& site) {
  const Ints& permutation = site.attrs.ints("permutation");
  const Shape& from = site.type(0).shape;
  if (is_ascending(permutation)) return site.inputs[0];
  // Dimensions of size other than 1 keep their order.
  Ints moved;
  for (int64_t dim : permutation) {
    if (at(from, dim) != 1) moved.push_back(dim);
  }
  if (is_ascending(moved) || element_count(from) == 0) return reshaped(site, site.inputs[0], site.output_type().shape);
  if (const Equation* inner = site.simplifier.made_by(site.inputs[0], prim::transpose())) {
    const Ints& first = inner->attrs.ints("permutation");
    Ints joined;
    for (int64_t dim : permutation) joined.push_back(at(first, dim));
    return site.simplifier.add(site.primitive, {inner->inputs[0]}, {{"permutation", joined}}, site.source);
  }
  const Equation* inner = site.simplifier.made_by(site.inputs[0], prim::broadcast_in_dim());
  if (!inner || !is_plain(inner->attrs)) return std::nullopt;
  Ints place(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    place[static_cast<std::size_t>(permutation[i])] = static_cast<int64_t>(i);
  Ints dims;
  for (int64_t dim : inner->attrs.ints("broadcast_dimensions")) dims.push_back(at(place, dim));
  if (!is_ascending(dims)) return std::nullopt;
  return site.simplifier.add(prim::broadcast_in_dim(), {inner->inputs[0]},
                             broadcast_attrs(site.output_type().shape, dims), site.source);
}

Result reverse(Site& site) {
  for (int64_t dim : site.attrs.ints("dimensions")) {
    if (at(site.type(0).shape, dim) > 1) return std::nullopt;
  }
  return site.inputs[0];
}

// A slice of everything. Strides do not matter if no element is left out.
Result slice(Site& site) {
  return site.attrs.ints("limit_indices") == site.type(0).shape && site.output_type().shape == site.type(0).shape
             ? Result(site.inputs[0])
             : std::nullopt;
}

Result dynamic_slice(Site& site) {
  return site.attrs.ints("slice_sizes") == site.type(0).shape ? Result(site.inputs[0]) : std::nullopt;
}

Result dynamic_update_slice(Site& site) {
  return site.type(1).shape == site.type(0).shape ? Result(site.inputs[1]) : std::nullopt;
}

Result concatenate(Site& site) {
  // Empty operands contribute nothing.
  std::vector<Atom> inputs;
  for (Atom input : site.inputs) {
    if (site.simplifier.type(input).size() > 0) inputs.push_back(input);
  }
  if (inputs.size() == 1) return inputs[0];
  if (inputs.empty() || inputs.size() == site.inputs.size()) return std::nullopt;
  return site.simplifier.add(site.primitive, inputs, site.attrs, site.source);
}

// A reduction over dimensions of size 1 alone, or over none. Complex ones are kept: their sums and products start from
// an explicit number.
Result reduce_nothing(Site& site) {
  if (is_complex(site.type(0).dtype)) return std::nullopt;
  const Attr* axes = site.attrs.find("axes");
  const Ints* list = axes ? axes->get_if<Ints>() : nullptr;
  if (!list || site.inputs.size() != 1 || !is_plain(site.attrs)) return std::nullopt;
  if (list->empty()) return site.inputs[0];
  for (int64_t axis : *list) {
    if (at(site.type(0).shape, axis) != 1) return std::nullopt;
  }
  return reshaped(site, site.inputs[0], site.output_type().shape);
}

}  // namespace

void add_shape_rules(Rules& rules) {
  rules.add({
      {prim::reshape(), reshape},
      {prim::squeeze(), squeeze},
      {prim::broadcast_in_dim(), broadcast},
      {prim::transpose(), transpose},
      {prim::rev(), reverse},
      {prim::slice(), slice},
      {prim::dynamic_slice(), dynamic_slice},
      {prim::dynamic_update_slice(), dynamic_update_slice},
      {prim::concatenate(), concatenate},
  });
  for (const Primitive& primitive : catalog()) {
    if (primitive->traits.combines == Combines::axes && primitive->traits.monoid) rules.add(primitive, reduce_nothing);
  }
}

}  // namespace capibara::passes
