// The data movement of random programs: shapes, slices, gathers and scatters.
#include "backends/cpu/random/random_generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace capibara::random_programs {

namespace {

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

Ints numbers(int64_t count) {
  Ints list(at(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

}  // namespace

Value Generator::movement(const Value& x) {
  switch (dice_.below(10)) {
    case 0:
    case 1:
      return broadcast(x);
    case 2:
      return reshape(x);
    case 3: {
      Ints permutation = numbers(x.rank());
      require(x.rank() > 1);
      for (std::size_t i = permutation.size(); i-- > 1;)
        std::swap(permutation[i], permutation[at(dice_.below(static_cast<int64_t>(i) + 1))]);
      return moved(lax::transpose(x.array, permutation), x);
    }
    case 4: {
      Ints axes;
      for (int64_t d = 0; d < x.rank(); ++d) {
        if (dice_.chance(50)) axes.push_back(d);
      }
      require(!axes.empty());
      return moved(lax::rev(x.array, axes), x);
    }
    case 5:
      return pad(x);
    case 6:
      return concatenate(x);
    case 7: {
      const int64_t axis = dice_.between(0, x.rank());
      if (x.rank() > 0 && x.shape()[at(std::min(axis, x.rank() - 1))] == 1) {
        return moved(lax::squeeze(x.array, {std::min(axis, x.rank() - 1)}), x);
      }
      require(x.rank() < 4);
      return moved(lax::expand_dims(x.array, {axis}), x);
    }
    default:
      return slice(x);
  }
}

Value Generator::broadcast(const Value& x) {
  Shape shape = x.shape();
  Ints places = numbers(x.rank());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 && dice_.chance(60)) shape[d] = dice_.pick(sizes_);
  }
  const int64_t more = dice_.between(0, 4 - std::min<int64_t>(4, x.rank()));
  for (int64_t i = 0; i < more; ++i) {
    const int64_t place = dice_.between(0, static_cast<int64_t>(shape.size()));
    shape.insert(shape.begin() + place, dice_.pick(sizes_));
    for (int64_t& p : places) p += p >= place ? 1 : 0;
  }
  require(shape != x.shape() && fits(shape));
  return moved(lax::broadcast_in_dim(x.array, shape, places), x);
}

Value Generator::reshape(const Value& x) {
  const int64_t size = x.size();
  Shape shape;
  if (dice_.chance(30)) return moved(lax::reshape(x.array, {size}), x);
  int64_t rest = size;
  while (shape.size() < 3 && rest > 1) {
    const int64_t divisor = dice_.pick(Ints{2, 3, 4, 5, 13, 17, 31, 1});
    if (rest % divisor != 0) {
      if (dice_.chance(30)) break;
      continue;
    }
    shape.push_back(divisor);
    rest /= divisor;
  }
  shape.insert(shape.begin() + dice_.between(0, static_cast<int64_t>(shape.size())), rest);
  return moved(lax::reshape(x.array, shape), x);
}

Value Generator::slice(const Value& x) {
  require(x.rank() > 0);
  Ints starts, limits, strides;
  for (int64_t length : x.shape()) {
    const bool whole = dice_.chance(35);
    const int64_t start = whole ? 0 : dice_.between(0, length), limit = whole ? length : dice_.between(start, length);
    starts.push_back(std::min(start, std::max<int64_t>(0, limit - 1)));
    limits.push_back(limit);
    strides.push_back(dice_.chance(65) ? 1 : dice_.between(1, 3));
  }
  Array result = lax::slice(x.array, starts, limits, strides);
  require(result.size() > 0 || dice_.chance(5));
  return moved(result, x);
}

Value Generator::pad(const Value& x) {
  require(x.rank() > 0);
  std::vector<lax::PadDim> config;
  Shape shape;
  for (int64_t length : x.shape()) {
    lax::PadDim dim{dice_.between(-1, 3), dice_.between(-1, 3), dice_.chance(30) ? dice_.between(1, 2) : 0};
    if (dice_.chance(40)) dim = {};
    const int64_t total = dim.low + dim.high + length + dim.interior * std::max<int64_t>(0, length - 1);
    require(total >= 0);
    shape.push_back(total);
    config.push_back(dim);
  }
  require(fits(shape));
  Value filler = dice_.chance(50) ? constant(x.dtype(), {}) : like({}, x.dtype());
  return joined(lax::pad(x.array, filler.array, config), {x, filler});
}

Value Generator::concatenate(const Value& x) {
  const int64_t axis = axis_of(x);
  Arrays parts = {x.array};
  Value all = x;
  Shape total = x.shape();
  const int64_t more = dice_.between(1, 3);
  for (int64_t i = 0; i < more; ++i) {
    Shape shape = x.shape();
    if (dice_.chance(50)) shape[at(axis)] = dice_.pick(sizes_);
    total[at(axis)] += shape[at(axis)];
    require(fits(total));
    Value part = like(shape, x.dtype());
    parts.insert(parts.begin() + dice_.between(0, static_cast<int64_t>(parts.size())), part.array);
    all = joined(all.array, {all, part});
  }
  return moved(lax::concatenate(parts, axis), all);
}

Value Generator::indexed(const Value& x) {
  require(x.rank() > 0 && x.size() > 0);
  switch (dice_.below(4)) {
    case 0:
      return dynamic_slice(x);
    case 1:
      return dynamic_update(x);
    case 2:
      return gather(x);
    default:
      return scatter(x);
  }
}

Value Generator::dynamic_slice(const Value& x) {
  Arrays starts;
  Ints sizes;
  for (int64_t length : x.shape()) {
    starts.push_back(index_number().array);
    sizes.push_back(dice_.chance(40) ? length : dice_.between(1, length));
  }
  return moved(lax::dynamic_slice(x.array, starts, sizes, dice_.chance(50)), x);
}

Value Generator::dynamic_update(const Value& x) {
  Arrays starts;
  Shape sizes;
  for (int64_t length : x.shape()) {
    starts.push_back(index_number().array);
    sizes.push_back(dice_.chance(40) ? length : dice_.between(1, length));
  }
  Value update = like(sizes, x.dtype());
  return joined(lax::dynamic_update_slice(x.array, update.array, starts, dice_.chance(50)), {x, update});
}

Value Generator::gather(const Value& x) {
  const int64_t count = dice_.pick(sizes_), axis = axis_of(x), length = x.shape()[at(axis)];
  Shape shape = x.shape();
  shape[at(axis)] = count;
  require(fits(shape));
  // Windows of size one along the axis and full size in the other dimensions; some are out of bounds.
  Value places = tame(like({count, 1}, DType::int32, true), 12);
  if (dice_.chance(60))
    places = made(lax::rem(lax::abs(places.array), number(DType::int32, static_cast<double>(length))), 12, {});
  Ints windows = x.shape();
  windows[at(axis)] = 1;
  GatherDimensionNumbers numbers_of;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != axis) numbers_of.offset_dims.push_back(d);
  }
  numbers_of.collapsed_slice_dims = {axis};
  numbers_of.start_index_map = {axis};
  lax::GatherOptions options;
  if (dice_.chance(40)) {
    options.mode = lax::GatherScatterMode::fill_or_drop;
    options.fill_value = number(x.dtype(), is_bool(x.dtype()) ? 0 : 1);
  } else {
    options.mode = lax::GatherScatterMode::clip;
  }
  return made(lax::gather(x.array, places.array, numbers_of, windows, options), std::max(1.0, x.bound), x.error);
}

Value Generator::scatter(const Value& x) {
  const int64_t count = dice_.pick(sizes_), axis = axis_of(x);
  Shape shape = x.shape();
  shape[at(axis)] = count;
  require(fits(shape));
  Value places = tame(like({count, 1}, DType::int32, true), 12);
  Value updates = tame(like(shape, x.dtype()), 4);
  ScatterDimensionNumbers numbers_of;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != axis) numbers_of.update_window_dims.push_back(d);
  }
  numbers_of.inserted_window_dims = {axis};
  numbers_of.scatter_dims_to_operand_dims = {axis};
  const int64_t kind = dice_.below(4);
  if (kind == 0) return joined(lax::scatter(x.array, places.array, updates.array, numbers_of), {x, updates});
  if (kind == 1 && !is_complex(x.dtype())) {
    auto function = dice_.chance(50) ? lax::scatter_min : lax::scatter_max;
    return joined(function(x.array, places.array, updates.array, numbers_of, {}), {x, updates});
  }
  require(!is_bool(x.dtype()));
  // Indices may repeat: up to `count` updates go to one element.
  const auto terms = static_cast<double>(std::max<int64_t>(1, count));
  const double bound = x.bound + terms * updates.bound;
  if (is_inexact(x.dtype())) require(bound < 256);
  if (is_integer(x.dtype()) && kind == 2) {
    return made(lax::scatter_mul(x.array, places.array, updates.array, numbers_of), std::exp2(bits(x.dtype())), {});
  }
  return made(lax::scatter_add(x.array, places.array, updates.array, numbers_of),
              is_integer(x.dtype()) ? std::exp2(bits(x.dtype())) : bound, x.error + terms * updates.error,
              2 + terms / 4);
}

}  // namespace capibara::random_programs
