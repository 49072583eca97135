// The operations of random programs that the partitioner treats specially: windows that slide over a dimension,
// gathers and scatters, positions of extremes, random bits and copies.
#include "backends/cpu/random/random_generator.h"

#include <capibara/random.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace capibara::random_programs {

namespace {

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

bool has_sums(DType dtype) { return !is_bool(dtype) && !(is_floating(dtype) && bits(dtype) < 16); }

double units_of_terms(double terms, DType dtype) {
  return bits(real_dtype(dtype)) < 32 ? 1.2 + terms / 1024 : 2 + terms / 4;
}

Ints shuffled(Dice& dice, int64_t count) {
  Ints order(at(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[at(dice.below(static_cast<int64_t>(i) + 1))]);
  return order;
}

// `sizes` permuted: dimension d moves to place[d].
Shape arranged(const Shape& sizes, const Ints& place) {
  Shape shape(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) shape[at(place[d])] = sizes[d];
  return shape;
}

// Inserts the sizes of windows at their dimensions among the counts.
Shape interleaved(const Ints& windows, const Shape& window_sizes, const Shape& counts) {
  Shape shape(windows.size() + counts.size(), -1);
  for (std::size_t i = 0; i < windows.size(); ++i) shape[at(windows[i])] = window_sizes[i];
  auto next = counts.begin();
  for (int64_t& size : shape) {
    if (size < 0) size = *next++;
  }
  return shape;
}

}  // namespace

// In half of them, parts of the result start where parts of the operand start.
Generator::Slides Generator::slides(const Shape& shape) {
  Slides slides;
  for (const int64_t length : shape) {
    require(length > 0);
    const int64_t window = dice_.chance(35) ? 1 : dice_.between(1, std::min<int64_t>(length, 5));
    const int64_t dilation = window > 1 && dice_.chance(25) ? 2 : 1, reach = (window - 1) * dilation + 1;
    const int64_t stride = dice_.pick(Ints{1, 1, 1, 2, 2, 3, 4});
    int64_t low = dice_.between(0, reach - 1), high = dice_.between(0, reach - 1);
    if (dice_.chance(60)) {
      const int64_t total = std::max<int64_t>(0, reach - stride);
      low = dice_.between(0, total);
      high = total - low;
    }
    require(low + length + high >= reach);
    slides.windows.push_back(window);
    slides.dilations.push_back(dilation);
    slides.strides.push_back(stride);
    slides.padding.emplace_back(low, high);
  }
  return slides;
}

Value Generator::sliding_window(const Value& x) {
  const DType dtype = x.dtype();
  require(x.rank() > 0 && x.size() > 0 && !is_complex(dtype) && has_sums(dtype));
  const Slides slid = slides(x.shape());
  lax::WindowOptions options;
  options.strides = slid.strides;
  options.padding = slid.padding;
  options.window_dilation = slid.dilations;
  double terms = 1;
  for (const int64_t window : slid.windows) terms *= static_cast<double>(window);
  require(static_cast<double>(x.size()) * terms * static_cast<double>(scope_->repeats) <=
          40.0 * static_cast<double>(max_elements_));
  const int64_t kind = dice_.below(4);
  if (kind == 0) {
    const double bound = is_integer(dtype) ? std::exp2(bits(dtype)) : terms * x.bound;
    const Array sums = lax::reduce_window_sum(x.array, slid.windows, options);
    require(fits(sums.shape()));
    return made(sums, bound, terms * x.error, units_of_terms(terms, dtype));
  }
  if (kind == 1) {
    // A reduction that is described only by its body.
    auto smaller = [](const Array& a, const Array& b) { return lax::min(a, b); };
    const Array least = lax::reduce_window(x.array, number(dtype, 1), smaller, slid.windows, options);
    require(fits(least.shape()));
    return made(least, std::max(1.0, x.bound), x.error);
  }
  const Array extremes = kind == 2 ? lax::reduce_window_max(x.array, slid.windows, options)
                                   : lax::reduce_window_min(x.array, slid.windows, options);
  require(fits(extremes.shape()));
  if (is_integer(dtype)) return made(extremes, std::exp2(bits(dtype)), {});
  // A window over padding alone gives the end of the type's range.
  const double limit = std::exp2(std::ceil(std::log2(std::max(x.bound, 0.125))));
  return made(lax::clamp(number(dtype, -limit), extremes, number(dtype, limit)), limit, x.error);
}

Value Generator::convolution(const Value& given) {
  const DType dtype = given.dtype();
  require(is_floating(dtype) && has_sums(dtype) && given.size() > 0 && has_order());
  const int64_t space = dice_.between(1, 2), batch = dice_.pick(Ints{1, 2, 4, 8}), features = dice_.pick(Ints{2, 4, 8});
  lax::ConvOptions options;
  const int64_t groups = dice_.chance(60) ? 1 : dice_.pick(Ints{2, features});
  int64_t outputs = dice_.between(1, 4) * groups;
  if (groups > 1 && batch % groups == 0 && dice_.chance(40)) {
    options.batch_group_count = groups;
  } else {
    options.feature_group_count = groups;
  }
  Shape data = {batch, features}, seen, kernel = {outputs, features / options.feature_group_count};
  for (int64_t d = 0; d < space; ++d) {
    const int64_t length = dice_.pick(sizes_);
    require(length > 0);
    options.lhs_dilation.push_back(dice_.chance(15) ? 2 : 1);
    data.push_back(length);
    seen.push_back((length - 1) * options.lhs_dilation.back() + 1);
  }
  const Slides slid = slides(seen);
  kernel.insert(kernel.end(), slid.windows.begin(), slid.windows.end());
  options.window_strides = slid.strides;
  options.rhs_dilation = slid.dilations;
  options.padding = slid.padding;
  const int64_t rank = space + 2;
  ConvDimensionNumbers numbers{shuffled(dice_, rank), shuffled(dice_, rank), shuffled(dice_, rank)};
  options.dimension_numbers = numbers;
  require(fits(data) && fits(kernel));
  const double terms = static_cast<double>(element_count(kernel)) / static_cast<double>(outputs);
  require(static_cast<double>(element_count(data)) * terms * static_cast<double>(outputs * scope_->repeats) <=
          200.0 * static_cast<double>(max_elements_));
  const Value x = tame(shaped(given, arranged(data, numbers.lhs_spec)), 2);
  const Value y = tame(like(arranged(kernel, numbers.rhs_spec), dtype), 1);
  const Array result = lax::conv_general_dilated(x.array, y.array, options);
  require(fits(result.shape()));
  return made(result, terms * x.bound * y.bound, (terms * y.bound) * x.error + (terms * x.bound) * y.error,
              units_of_terms(terms, dtype));
}

// Indices with one or more components, batches, and slices longer than one; some are out of bounds.
Generator::Places Generator::places(const Value& x) {
  require(x.rank() > 0 && x.size() > 0);
  Places places;
  int64_t least = 64, kept = 0;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const int64_t length = x.shape()[at(d)], role = dice_.below(100);
    least = role < 65 ? std::min(least, length) : least;
    if (role < 65) places.indexed.push_back(d);
    if (role < 45) {
      places.single.push_back(d);
    } else if (role >= 85 && places.batches.empty()) {
      places.batches.push_back(d);
    } else {
      ++kept;
    }
    const bool whole = role >= 65 && (role < 85 || places.batches != Ints{d});
    places.slices.push_back(whole ? length : role >= 45 && role < 65 ? dice_.between(1, length) : 1);
  }
  require(!places.indexed.empty());
  const auto components = static_cast<int64_t>(places.indexed.size());
  Ints mixed;
  for (const int64_t i : shuffled(dice_, components)) mixed.push_back(places.indexed[at(i)]);
  places.indexed = mixed;
  const int64_t more = dice_.between(0, 2);
  for (int64_t i = 0; i < more; ++i) places.counts.push_back(dice_.pick(sizes_));
  for (const int64_t d : places.batches) {
    places.batched.push_back(dice_.between(0, more));
    places.counts.insert(places.counts.begin() + places.batched.back(), x.shape()[at(d)]);
  }
  const auto rank = static_cast<int64_t>(places.counts.size()) + kept;
  places.windows = shuffled(dice_, rank);
  places.windows.resize(at(kept));
  std::sort(places.windows.begin(), places.windows.end());
  Shape shape = places.counts;
  shape.push_back(components);
  require(fits(shape));
  Value indices = tame(like(shape, DType::int32, true), 12);
  if (dice_.chance(40)) indices = made(lax::mul(indices.array, number(DType::int32, 3)), 36, {});
  if (dice_.chance(60))
    indices = made(lax::rem(lax::abs(indices.array), number(DType::int32, static_cast<double>(least))), 36, {});
  if (dice_.chance(20)) indices = converted(indices, dice_.pick(std::vector{DType::int64, DType::uint32, DType::int8}));
  places.indices = indices.array;
  return places;
}

Value Generator::gather_places(const Value& x) {
  const Places places = this->places(x);
  Shape windows;
  for (int64_t d = 0; d < x.rank(); ++d) {
    auto names = [&](const Ints& list) { return std::find(list.begin(), list.end(), d) != list.end(); };
    if (!names(places.single) && !names(places.batches)) windows.push_back(places.slices[at(d)]);
  }
  require(fits(interleaved(places.windows, windows, places.counts)));
  lax::GatherOptions options;
  options.mode = lax::GatherScatterMode::clip;
  if (dice_.chance(50)) {
    options.mode = lax::GatherScatterMode::fill_or_drop;
    options.fill_value = number(x.dtype(), is_bool(x.dtype()) ? 0 : 1);
  }
  const Array result = lax::gather(x.array, places.indices,
                                   {places.windows, places.single, places.indexed, places.batches, places.batched},
                                   places.slices, options);
  return made(result, std::max(1.0, x.bound), x.error);
}

Value Generator::scatter_places(const Value& x) {
  const Places places = this->places(x);
  const DType dtype = x.dtype();
  Shape windows;
  for (int64_t d = 0; d < x.rank(); ++d) {
    auto names = [&](const Ints& list) { return std::find(list.begin(), list.end(), d) != list.end(); };
    if (!names(places.single) && !names(places.batches)) windows.push_back(places.slices[at(d)]);
  }
  const Shape shape = interleaved(places.windows, windows, places.counts);
  require(fits(shape));
  const auto terms = static_cast<double>(std::max<int64_t>(1, element_count(places.counts)));
  Value updates = like(shape, dtype);
  if (is_inexact(dtype)) updates = tame(updates, 64 / terms);
  const ScatterDimensionNumbers numbers{places.windows, places.single, places.indexed, places.batches, places.batched};
  lax::ScatterOptions options;
  options.mode = dice_.chance(50) ? lax::GatherScatterMode::clip : lax::GatherScatterMode::fill_or_drop;
  const int64_t kind = dice_.below(5);
  if (kind == 0) return joined(lax::scatter(x.array, places.indices, updates.array, numbers, options), {x, updates});
  if (kind == 1 && !is_complex(dtype)) {
    auto function = dice_.chance(50) ? lax::scatter_min : lax::scatter_max;
    return joined(function(x.array, places.indices, updates.array, numbers, options), {x, updates});
  }
  require(has_sums(dtype));
  if (is_integer(dtype)) {
    auto function = kind == 2 ? lax::scatter_mul : lax::scatter_add;
    return made(function(x.array, places.indices, updates.array, numbers, options), std::exp2(bits(dtype)), {});
  }
  const double bound = x.bound + terms * updates.bound;
  require(bound < 256);
  return made(lax::scatter_add(x.array, places.indices, updates.array, numbers, options), bound,
              x.error + terms * updates.error, 2 + terms / 4);
}

Value Generator::extreme_place(const Value& x) {
  const int64_t axis = axis_of(x), length = x.shape()[at(axis)];
  require(x.exact() && !is_complex(x.dtype()) && length > 0);
  const DType index = dice_.pick(std::vector{DType::int32, DType::int32, DType::int64, DType::uint32, DType::int8});
  const Array place = dice_.chance(50) ? lax::argmax(x.array, axis, index) : lax::argmin(x.array, axis, index);
  return made(place, static_cast<double>(length), {});
}

// Random bits, the same on every mesh.
Value Generator::draws(const Value&) {
  const Array key = jax::random::PRNGKey(dice_.chance(50) ? number(DType::int32, 7) : index_number().array);
  const Shape shape = any_shape(3);
  equations_ += 4;
  if (dice_.chance(50))
    return made(jax::random::bits(key, {.shape = shape, .dtype = DType::uint32}), std::exp2(32), {});
  const DType dtype = kind_ == Kind::smooth ? DType::float64 : DType::float32;
  return made(jax::random::uniform(key, {.shape = shape, .dtype = dtype}), 1, {});
}

Value Generator::copies(const Value& x) {
  const int64_t axis = axis_of(x), length = x.shape()[at(axis)];
  if (dice_.chance(50)) {
    Ints repeats;
    Shape shape = x.shape();
    for (int64_t& size : shape) {
      repeats.push_back(dice_.pick(Ints{1, 1, 2, 3}));
      size *= repeats.back();
    }
    require(fits(shape));
    return moved(lax::tile(x.array, repeats), x);
  }
  require(length > 1);
  const int64_t first = length % 2 == 0 && dice_.chance(60) ? length / 2 : dice_.between(1, length - 1);
  const Arrays parts = lax::split(x.array, {first, length - first}, axis);
  keep(moved(parts[1], x));
  return moved(parts[0], x);
}

}  // namespace capibara::random_programs
