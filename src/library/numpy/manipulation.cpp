// jax.numpy: shapes, axes and the order of elements.
#include <capibara/lax.h>
#include <capibara/numpy/manipulation.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"

namespace capibara::jax::numpy {

// ---- shape -------------------------------------------------------------------------------------------------------

Array reshape(const Array& a, const Shape& shape, const ReshapeOptions& options) {
  if (options.order == "C") return a.reshape(shape);
  if (options.order == "A") throw NotImplementedError("reshape: order='A' is not implemented; use 'C' or 'F'");
  if (options.order != "F") {
    throw ValueError(concat("reshape: order must be 'C' or 'F', got '", options.order, "'"));
  }
  // Column-major: the row-major reshape of the reversed axes, with its axes reversed again.
  Shape reversed(shape.rbegin(), shape.rend());
  return a.transpose().reshape(reversed).transpose();
}

Array ravel(const Array& a, const ReshapeOptions& options) {
  if (options.order == "K") throw NotImplementedError("ravel: order='K' is not implemented; use 'C' or 'F'");
  return reshape(a, {a.size()}, options);
}

Array resize(const Array& a, const Shape& new_shape) {
  if (std::any_of(new_shape.begin(), new_shape.end(), [](int64_t size) { return size < 0; })) {
    throw ValueError(concat("resize: the sizes in new_shape must not be negative, got ", tuple(new_shape)));
  }
  const int64_t size = element_count(new_shape);
  Array flat = ravel(a);
  if (flat.size() == 0 || size == 0) return lax::zeros(flat.type().with_shape(new_shape));
  const int64_t repeats = (size + flat.size() - 1) / flat.size();
  return reshape(lax::slice_in_dim(tile(flat, {repeats}), 0, size), new_shape);
}

Array transpose(const Array& a, const std::optional<Ints>& axes) {
  Ints order;
  if (axes) {
    for (int64_t axis : *axes) order.push_back(canonical_axis("transpose", axis, a.ndim()));
  } else {
    order = range(a.ndim());
    std::reverse(order.begin(), order.end());
  }
  return lax::transpose(a, order);
}

Array permute_dims(const Array& a, const Ints& axes) { return lax::transpose(a, axes); }

Array matrix_transpose(const Array& x) {
  if (x.ndim() < 2) {
    throw ValueError(
        concat("matrix_transpose: an array of at least two dimensions is needed, got ", to_string(x.type())));
  }
  Ints order = range(x.ndim());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return lax::transpose(x, order);
}

Array moveaxis(const Array& a, const Axis& source, const Axis& destination) {
  Ints from, to;
  for (int64_t axis : source.list()) from.push_back(canonical_axis("moveaxis", axis, a.ndim()));
  for (int64_t axis : destination.list()) to.push_back(canonical_axis("moveaxis", axis, a.ndim()));
  if (from.size() != to.size()) {
    throw ValueError(
        concat("moveaxis: source and destination must have equally many axes, got ", from.size(), " and ", to.size()));
  }
  std::vector<std::pair<int64_t, int64_t>> moves;
  for (std::size_t i = 0; i < from.size(); ++i) moves.emplace_back(to[i], from[i]);
  std::sort(moves.begin(), moves.end());
  Ints order = other_dims(a.ndim(), from);
  for (const auto& [position, axis] : moves) {
    order.insert(order.begin() + std::min<int64_t>(position, static_cast<int64_t>(order.size())), axis);
  }
  return lax::transpose(a, order);
}

Array swapaxes(const Array& a, int64_t axis1, int64_t axis2) {
  auto place = [&](int64_t axis) {
    if (axis < -a.ndim() || axis >= a.ndim()) {
      throw IndexError(concat("swapaxes: axis ", axis, " is out of bounds for array of dimension ", a.ndim()));
    }
    return static_cast<std::size_t>(axis < 0 ? axis + a.ndim() : axis);
  };
  Ints order = range(a.ndim());
  std::swap(order[place(axis1)], order[place(axis2)]);
  return lax::transpose(a, order);
}

Array rollaxis(const Array& a, int64_t axis, int64_t start) {
  axis = canonical_axis("rollaxis", axis, a.ndim());
  if (start < -a.ndim() || start > a.ndim()) {
    throw ValueError(concat("rollaxis: start must be in [", -a.ndim(), ", ", a.ndim(), "], got ", start));
  }
  if (start < 0) start += a.ndim();
  if (start > axis) --start;
  return moveaxis(a, axis, start);
}

Array expand_dims(const Array& a, const Axis& axis) { return lax::expand_dims(a, axis.list()); }

Array squeeze(const Array& a, const Axis& axis) {
  if (!axis.all()) return lax::squeeze(a, axis.list());
  Ints ones;
  for (int64_t i = 0; i < a.ndim(); ++i) {
    if (a.shape(i) == 1) ones.push_back(i);
  }
  return lax::squeeze(a, ones);
}

Array broadcast_to(const Array& array, const Shape& shape) {
  return capibara::broadcast_to("broadcast_to", array, shape);
}

Arrays broadcast_arrays(const Arrays& args) { return capibara::broadcast_arrays("broadcast_arrays", args); }

Array atleast_1d(const Array& x) { return x.ndim() >= 1 ? x : lax::broadcast_to_rank(x, 1); }
Array atleast_2d(const Array& x) { return x.ndim() >= 2 ? x : lax::broadcast_to_rank(x, 2); }
Array atleast_3d(const Array& x) {
  if (x.ndim() == 0) return lax::expand_dims(x, {0, 1, 2});
  if (x.ndim() == 1) return lax::expand_dims(x, {0, 2});
  return x.ndim() == 2 ? lax::expand_dims(x, {2}) : x;
}

// ---- order -------------------------------------------------------------------------------------------------------

Array flip(const Array& m, const Axis& axis) {
  if (axis.all()) return lax::rev(m, range(m.ndim()));
  Ints axes;
  for (int64_t one : axis.list()) axes.push_back(canonical_axis("flip", one, m.ndim()));
  return lax::rev(m, axes);
}
Array fliplr(const Array& m) { return flip(m, 1); }
Array flipud(const Array& m) { return flip(m, 0); }

Array rot90(const Array& m, const Rot90Options& options) {
  if (m.ndim() < 2) {
    throw ValueError(
        concat("rot90 requires its first argument to have ndim at least two, but got first argument of type ",
               to_string(m.type())));
  }
  const int64_t first = canonical_axis("rot90", options.axes.first, m.ndim());
  const int64_t second = canonical_axis("rot90", options.axes.second, m.ndim());
  if (first == second) throw ValueError(concat("rot90: axes must be different, got ", first, " twice"));
  const int64_t rotations = ((options.k % 4) + 4) % 4;
  if (rotations == 0) return m;
  if (rotations == 2) return flip(flip(m, first), second);
  return rotations == 1 ? swapaxes(flip(m, second), first, second) : flip(swapaxes(m, first, second), second);
}

namespace {

// Rolls by static amounts: swaps two slices.
Array roll_by(Array x, const Ints& shifts, const Ints& axes) {
  const std::size_t count = shifts.size() == 1 ? axes.size() : shifts.size();
  if (axes.size() != 1 && axes.size() != count) {
    throw ValueError(concat("roll: shift and axis must have equal lengths or length one, got ", shifts.size(), " and ",
                            axes.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const int64_t axis = axes[axes.size() == 1 ? 0 : i], shift = shifts[shifts.size() == 1 ? 0 : i];
    const int64_t size = x.shape(axis);
    if (size == 0) continue;
    const int64_t cut = (size - shift % size) % size;
    x = lax::concatenate({lax::slice_in_dim(x, cut, size, 1, axis), lax::slice_in_dim(x, 0, cut, 1, axis)}, axis);
  }
  return x;
}

// Rolls by traced amounts: a window into the array concatenated with itself.
Array roll_dynamic(Array x, const Array& shift, const Ints& axes) {
  const Shape together = lax::broadcast_shapes({shift.shape(), {static_cast<int64_t>(axes.size())}});
  if (together.size() != 1) {
    throw ValueError(concat("roll: shift must be a scalar or one-dimensional, got ", to_string(shift.type())));
  }
  Array shifts = capibara::broadcast_to("roll", shift, together);
  for (int64_t i = 0; i < together[0]; ++i) {
    const int64_t axis = axes[axes.size() == 1 ? 0 : static_cast<std::size_t>(i)];
    const auto size = static_cast<int32_t>(x.shape(axis));
    Array amount = lax::convert_element_type(lax::index_in_dim(shifts, i, 0, false), DType::int32, false);
    amount = amount % capibara::array<int32_t>({std::max(size, 1)}, Shape{});
    Array start = capibara::array<int32_t>({size}, Shape{}) - amount;
    x = lax::dynamic_slice_in_dim(lax::concatenate({x, x}, axis), start, size, axis);
  }
  return x;
}

}  // namespace

Array roll(const Array& a, const Array& shift, const Axis& axis) {
  if (axis.all()) return reshape(roll(ravel(a), shift, 0), a.shape());
  Ints axes;
  for (int64_t one : axis.list()) axes.push_back(canonical_axis("roll", one, a.ndim()));
  if (shift.is_tracer() || shift.ndim() > 1 || !(is_integer(shift.dtype()) || shift.size() == 0)) {
    return roll_dynamic(a, shift, axes);
  }
  return roll_by(a, shift.to_vector<int64_t>(), axes);
}

}  // namespace capibara::jax::numpy
