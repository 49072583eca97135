// Follows the axes of logits through transposes, reshapes, broadcasts and matmuls.
#include "kernels/attention/labelled.h"

#include <algorithm>

#include "program/ir/handles.h"

namespace capibara::kernels {

namespace {

std::size_t index(int64_t i) { return static_cast<std::size_t>(i); }

Ints free_dimensions(std::size_t rank, const Ints& contracting, const Ints& batch) {
  Ints rest;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i) {
    const bool taken =
        std::count(contracting.begin(), contracting.end(), i) || std::count(batch.begin(), batch.end(), i);
    if (!taken) rest.push_back(i);
  }
  return rest;
}

const DotDimensionNumbers& numbers_of(const Equation& dot) {
  return dot.attrs.get<DotDimensionNumbers>("dimension_numbers");
}

// True if a reshape keeps the order of elements: all except those that also permute.
bool is_plain_reshape(const Equation& equation) {
  if (equation.primitive == prim::squeeze()) return true;
  const Attr* dimensions = equation.attrs.find("dimensions");
  return equation.primitive == prim::reshape() && (!dimensions || dimensions->is_none());
}

}  // namespace

bool holds(std::span<const int> list, int value) { return std::find(list.begin(), list.end(), value) != list.end(); }

Axes logit_axes(const Axes& axes) {
  Axes own;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(own), [](int axis) { return axis >= 0; });
  std::sort(own.begin(), own.end());
  return own;
}

std::size_t count_of(const Axes& axes, int axis) {
  return static_cast<std::size_t>(std::count(axes.begin(), axes.end(), axis));
}

std::optional<double> Equations::number(Atom atom) const {
  if (const Equation* spread = made_by(atom, prim::broadcast_in_dim())) return number(spread->inputs[0]);
  if (!atom.is_literal() || !is_floating(type(atom).dtype)) return std::nullopt;
  return program().literal(atom).item<double>();
}

Axes Equations::without_units(Axes axes, const Shape& shape) const {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (shape[i] == 1) axes[i] = no_axis;
  }
  return axes;
}

Labelled Equations::beside(Atom atom, const Axes& axes) const {
  const Shape& shape = type(atom).shape;
  return {atom, shape.size() == axes.size() ? without_units(axes, shape) : Axes(shape.size(), no_axis)};
}

std::optional<Axes> Equations::across_units(const Shape& from, const Axes& axes, const Shape& to) const {
  Axes result(to.size(), no_axis);
  std::size_t next = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    while (next < to.size() && to[next] == 1) ++next;
    if (next == to.size() || to[next] != from[i]) return std::nullopt;
    result[next++] = axes[i];
  }
  while (next < to.size() && to[next] == 1) ++next;
  return next == to.size() ? std::optional<Axes>(result) : std::nullopt;
}

std::optional<Axes> Equations::axes_before(const Equation& equation, const Axes& axes, bool broadcasts) const {
  if (equation.inputs.empty()) return std::nullopt;
  const Primitive& primitive = equation.primitive;
  if (primitive == prim::stop_gradient() || primitive == prim::copy()) return axes;
  const Shape& from = type(equation.inputs[0]).shape;
  if (is_plain_reshape(equation)) return across_units(type(equation.outputs[0]).shape, axes, from);
  Axes before(from.size(), no_axis);
  if (primitive == prim::transpose()) {
    const Ints& permutation = equation.attrs.ints("permutation");
    for (std::size_t i = 0; i < axes.size(); ++i) before[index(permutation[i])] = axes[i];
    return before;
  }
  if (primitive != prim::broadcast_in_dim() || !broadcasts) return std::nullopt;
  const Ints& dimensions = equation.attrs.ints("broadcast_dimensions");
  for (std::size_t i = 0; i < from.size(); ++i) before[i] = axes[index(dimensions[i])];
  return without_units(before, from);
}

std::optional<Axes> Equations::axes_after(const Equation& equation, const Axes& axes) const {
  const Primitive& primitive = equation.primitive;
  if (primitive == prim::convert_element_type() || primitive == prim::copy()) return axes;
  const Shape &from = type(equation.inputs[0]).shape, &to = type(equation.outputs[0]).shape;
  if (is_plain_reshape(equation)) return across_units(from, axes, to);
  if (primitive != prim::transpose()) return std::nullopt;
  Axes after;
  for (int64_t dimension : equation.attrs.ints("permutation")) after.push_back(axes[index(dimension)]);
  return after;
}

Labelled Equations::source(Labelled x, bool broadcasts, std::vector<int>* passed) const {
  for (int at = maker(x.atom); at >= 0; at = maker(x.atom)) {
    std::optional<Axes> axes = axes_before((*this)[at], x.axes, broadcasts);
    if (!axes) break;
    if (passed) passed->push_back(at);
    x = {(*this)[at].inputs[0], *axes};
  }
  return x;
}

bool Equations::same(const Labelled& a, const Labelled& b) const {
  const Labelled first = source(a, false), second = source(b, false);
  if (first.atom == second.atom) return first.axes == second.axes;
  const std::optional<double> one = number(first.atom), other = number(second.atom);
  return one && other && *one == *other && logit_axes(first.axes) == logit_axes(second.axes);
}

std::pair<Labelled, Labelled> Equations::operands(const Equation& dot, const Axes& result) const {
  const DotDimensionNumbers& numbers = numbers_of(dot);
  Labelled lhs{dot.inputs[0], Axes(type(dot.inputs[0]).shape.size(), feature_axis)};
  Labelled rhs{dot.inputs[1], Axes(type(dot.inputs[1]).shape.size(), feature_axis)};
  std::size_t next = 0;
  for (; next < numbers.lhs_batch.size(); ++next) {
    lhs.axes[index(numbers.lhs_batch[next])] = rhs.axes[index(numbers.rhs_batch[next])] = result[next];
  }
  for (int64_t i : free_dimensions(lhs.axes.size(), numbers.lhs_contracting, numbers.lhs_batch))
    lhs.axes[index(i)] = result[next++];
  for (int64_t i : free_dimensions(rhs.axes.size(), numbers.rhs_contracting, numbers.rhs_batch))
    rhs.axes[index(i)] = result[next++];
  return {beside(lhs.atom, lhs.axes), beside(rhs.atom, rhs.axes)};
}

std::pair<Labelled, Axes> Equations::other_operand(const Equation& dot, std::size_t side, const Axes& axes) const {
  const DotDimensionNumbers& numbers = numbers_of(dot);
  const bool left = side == 0;
  const Ints &contracting = left ? numbers.lhs_contracting : numbers.rhs_contracting,
             &others = left ? numbers.rhs_contracting : numbers.lhs_contracting,
             &batch = left ? numbers.lhs_batch : numbers.rhs_batch,
             &other_batch = left ? numbers.rhs_batch : numbers.lhs_batch;
  const Atom atom = dot.inputs[1 - side];
  Axes other(type(atom).shape.size(), feature_axis), result;
  for (std::size_t i = 0; i < contracting.size(); ++i) other[index(others[i])] = axes[index(contracting[i])];
  for (std::size_t i = 0; i < batch.size(); ++i) {
    other[index(other_batch[i])] = axes[index(batch[i])];
    result.push_back(axes[index(batch[i])]);
  }
  const Ints own_free = free_dimensions(axes.size(), contracting, batch);
  const std::size_t other_free = other.size() - others.size() - other_batch.size();
  if (!left) result.insert(result.end(), other_free, feature_axis);
  for (int64_t i : own_free) result.push_back(axes[index(i)]);
  if (left) result.insert(result.end(), other_free, feature_axis);
  return {beside(atom, other), without_units(result, type(dot.outputs[0]).shape)};
}

Axes Equations::contracted(const Equation& dot, std::size_t side, const Axes& axes) const {
  const DotDimensionNumbers& numbers = numbers_of(dot);
  Axes result;
  for (int64_t i : side == 0 ? numbers.lhs_contracting : numbers.rhs_contracting) result.push_back(axes[index(i)]);
  return logit_axes(result);
}

}  // namespace capibara::kernels
