// The operations of random programs along axes: reductions, row operations, cumulative sums, sorting, contractions.
#include "backends/cpu/random/random_generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace capibara::random_programs {

namespace {

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

double units_of_sum(double terms, DType dtype) {
  return bits(real_dtype(dtype)) < 32 ? 1.2 + terms / 1024 : 2 + terms / 4;
}

Ints all_axes(const Value& x) {
  Ints axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

double count_along(const Value& x, const Ints& axes) {
  int64_t count = 1;
  for (int64_t axis : axes) count *= x.shape()[at(axis)];
  return static_cast<double>(count);
}

// The result of a reduction broadcast back to the shape of its operand.
Array stretched(const Array& reduced, const Shape& shape, const Ints& axes) {
  Ints places;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) places.push_back(d);
  }
  return lax::broadcast_in_dim(reduced, shape, places);
}

bool small_float(DType dtype) { return is_floating(dtype) && bits(dtype) < 16; }

}  // namespace

// Operands are scaled down to keep the sum in the range of narrow types.
Value Generator::sum(const Value& given, const Ints& axes) {
  const double terms = std::max(1.0, count_along(given, axes));
  const DType dtype = given.dtype();
  if (is_integer(dtype)) return made(lax::reduce_sum(given.array, {axes}), std::exp2(bits(dtype)), {});
  Value x = terms * given.bound > 4096 ? tame(given, 4096 / terms) : given;
  return made(lax::reduce_sum(x.array, {axes}), terms * x.bound, terms * x.error, units_of_sum(terms, dtype));
}

Value Generator::mean(const Value& x, const Ints& axes) {
  const double terms = std::max(1.0, count_along(x, axes));
  Value total = sum(x, axes);
  if (is_integer(x.dtype())) return total;
  const double factor = total.bound <= 16 ? 1 : std::exp2(-std::floor(std::log2(terms)));
  return made(lax::mul(total.array, number(x.dtype(), factor)), total.bound * factor, factor * total.error, 1);
}

Value Generator::reduction(const Value& x) {
  Ints axes;
  for (int64_t axis : all_axes(x)) {
    if (dice_.chance(55)) axes.push_back(axis);
  }
  require(!axes.empty());
  const DType dtype = x.dtype();
  const double terms = count_along(x, axes);
  const int64_t kind = dice_.below(10);
  if (kind == 0 && x.exact() && !is_complex(dtype)) {
    const int64_t axis = axes[0];
    require(x.shape()[at(axis)] > 0);
    const DType index = dice_.chance(70) ? DType::int32 : DType::int64;
    Array place = dice_.chance(50) ? lax::argmax(x.array, axis, index) : lax::argmin(x.array, axis, index);
    return made(place, static_cast<double>(x.shape()[at(axis)]), {});
  }
  if (is_bool(dtype)) {
    Array result = kind < 4   ? lax::reduce_and(x.array, {axes})
                   : kind < 7 ? lax::reduce_or(x.array, {axes})
                   : kind < 8 ? lax::reduce_xor(x.array, {axes})
                   : kind < 9 ? lax::reduce_max(x.array, {axes})
                              : lax::reduce_min(x.array, {axes});
    return made(result, 1, {});
  }
  if (kind < 4 || is_complex(dtype)) {
    require(!small_float(dtype) || terms <= 8);
    return dice_.chance(50) ? sum(x, axes) : mean(x, axes);
  }
  if (kind == 4) {
    if (is_integer(dtype)) return made(lax::reduce_prod(x.array, {axes}), std::exp2(bits(dtype)), {});
    Value small = tame(x, 1);
    require(terms <= 64 && !small_float(dtype) && has_order());
    return made(lax::reduce_prod(small.array, {axes}), 1, terms * small.error, units_of_sum(terms, dtype));
  }
  if (kind == 5 && is_integer(dtype)) {
    Array result = dice_.chance(40)   ? lax::reduce_and(x.array, {axes})
                   : dice_.chance(50) ? lax::reduce_or(x.array, {axes})
                                      : lax::reduce_xor(x.array, {axes});
    return made(result, std::exp2(bits(dtype)), {});
  }
  require(terms > 0 || is_integer(dtype));  // an empty one gives the end of the type's range
  const double bound = terms > 0 ? x.bound : std::exp2(bits(dtype));
  if (kind == 6) {
    // A reduction that is described only by its body.
    auto smaller = [](const Array& a, const Array& b) { return lax::min(a, b); };
    return made(lax::reduce(x.array, number(dtype, is_unsigned(dtype) ? 3 : 1), smaller, axes), std::max(3.0, bound),
                x.error);
  }
  return made(kind < 8 ? lax::reduce_max(x.array, {axes}) : lax::reduce_min(x.array, {axes}), bound, x.error);
}

Value Generator::row_pattern(const Value& given) {
  require(is_floating(given.dtype()) && !small_float(given.dtype()) && given.rank() > 0 && given.size() > 0);
  const Ints axes = dice_.chance(75) ? Ints{given.rank() - 1} : Ints{axis_of(given)};
  const double terms = count_along(given, axes);
  Value x = tame(given, 4);
  const DType dtype = x.dtype();
  const Shape& shape = x.shape();
  equations_ += 4;
  auto row = [&](const Array& reduced) { return stretched(reduced, shape, axes); };
  switch (dice_.below(4)) {
    case 0: {  // softmax
      Array shifted = lax::exp(lax::sub(x.array, row(lax::reduce_max(x.array, {axes}))));
      Array result = lax::div(shifted, row(lax::reduce_sum(shifted, {axes})));
      return made(result, 1, 4 * x.error, 16 + units_of_sum(terms, dtype));
    }
    case 1: {  // logsumexp
      Array top = lax::reduce_max(x.array, {axes});
      Array total = lax::reduce_sum(lax::exp(lax::sub(x.array, row(top))), {axes});
      return made(lax::add(lax::log(total), top), x.bound + std::log(terms) + 0.1, 3 * x.error,
                  16 + units_of_sum(terms, dtype));
    }
    case 2: {  // normalised rows
      require(terms * x.bound < 8192);
      Value small = tame(x, 1);
      auto over_row = [&](const Array& a) { return lax::mul(lax::reduce_sum(a, {axes}), number(dtype, 1 / terms)); };
      Array centred = lax::sub(small.array, row(over_row(small.array)));
      Array variance = over_row(lax::mul(centred, centred));
      Array result = lax::mul(centred, row(lax::rsqrt(lax::add(variance, number(dtype, 0.5)))));
      return made(result, 2.9, 26 * small.error, 60 + 16 * units_of_sum(terms, dtype));
    }
    default: {  // root mean square
      require(terms * x.bound * x.bound < 8192);
      Array squares = lax::mul(lax::reduce_sum(lax::mul(x.array, x.array), {axes}), number(dtype, 1 / terms));
      Array result = lax::div(x.array, row(lax::sqrt(lax::add(squares, number(dtype, 1)))));
      return made(result, x.bound, (1 + 2 * x.bound * x.bound) * x.error, 16 + 8 * units_of_sum(terms, dtype));
    }
  }
}

Value Generator::cumulative(const Value& given) {
  const int64_t axis = axis_of(given);
  const lax::CumulativeOptions options{axis, dice_.chance(35)};
  const auto terms = static_cast<double>(std::max<int64_t>(1, given.shape()[at(axis)]));
  const DType dtype = given.dtype();
  require(!is_bool(dtype) && !small_float(dtype));
  const int64_t kind = dice_.below(5);
  if (kind < 2 || is_complex(dtype)) {
    Value x = is_inexact(dtype) && terms * given.bound > 1024 ? tame(given, 1024 / terms) : given;
    const double bound = is_integer(dtype) ? std::exp2(bits(dtype)) : terms * x.bound;
    return made(lax::cumsum(x.array, options), bound, terms * x.error, units_of_sum(terms, dtype));
  }
  if (kind == 2) {
    if (is_integer(dtype)) return made(lax::cumprod(given.array, options), std::exp2(bits(dtype)), {});
    require(terms <= 64 && has_order());
    Value x = tame(given, 1);
    return made(lax::cumprod(x.array, options), 1, terms * x.error, units_of_sum(terms, dtype));
  }
  if (kind == 3 && is_floating(dtype)) {
    Value x = tame(given, 8);
    return made(lax::cumlogsumexp(x.array, options), x.bound + std::log(terms) + 0.1, 3 * x.error,
                16 + 4 * units_of_sum(terms, dtype));
  }
  return made(dice_.chance(50) ? lax::cummax(given.array, options) : lax::cummin(given.array, options), given.bound,
              given.error);
}

Value Generator::sorted(const Value& x) {
  const int64_t axis = axis_of(x);
  require(!is_complex(x.dtype()) && x.size() > 0);
  const int64_t kind = dice_.below(3);
  if (kind == 0 || !x.exact()) return moved(lax::sort(x.array, {.dimension = axis}), x);
  if (kind == 1) {
    Value other = like(x.shape(), any_dtype());
    Arrays pair = lax::sort({x.array, other.array}, {.dimension = axis});
    keep(moved(pair[1], other));
    return moved(pair[0], x);
  }
  const int64_t last = x.shape().back();
  auto [values, places] = lax::top_k(x.array, dice_.between(1, std::min<int64_t>(last, 7)));
  keep(made(places, static_cast<double>(last), {}));
  return moved(values, x);
}

Value Generator::contraction(const Value& given) {
  require(given.rank() > 0 && !is_bool(given.dtype()) && !small_float(given.dtype()));
  const DType dtype = given.dtype();
  DotDimensionNumbers numbers;
  const int64_t contracted = axis_of(given);
  numbers.lhs_contracting = {contracted};
  // The other operand: the batch dimension, if any, the contracting one and a free one, in any order.
  std::vector<std::pair<int64_t, char>> dims = {{given.shape()[at(contracted)], 'c'}};
  if (given.rank() > 1 && dice_.chance(40)) {
    const int64_t batch = (contracted + 1) % given.rank();
    numbers.lhs_batch = {batch};
    dims.push_back({given.shape()[at(batch)], 'b'});
  }
  int64_t free = 1;
  if (dice_.chance(75)) {
    free = dice_.pick(sizes_);
    dims.push_back({free, 'f'});
  }
  for (std::size_t i = dims.size(); i-- > 1;) std::swap(dims[i], dims[at(dice_.below(static_cast<int64_t>(i) + 1))]);
  Shape shape;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    shape.push_back(dims[i].first);
    if (dims[i].second == 'c') numbers.rhs_contracting = {static_cast<int64_t>(i)};
    if (dims[i].second == 'b') numbers.rhs_batch = {static_cast<int64_t>(i)};
  }
  require(fits(shape) && given.size() * free * scope_->repeats <= 40 * max_elements_);
  Value x = is_inexact(dtype) ? tame(given, 2) : given;
  Value y = like(shape, dtype);
  if (is_inexact(dtype)) y = tame(y, 2);
  const auto terms = static_cast<double>(std::max<int64_t>(1, given.shape()[at(contracted)]));
  if (is_inexact(dtype) && terms * 4 > 4096) x = tame(x, 4096 / terms / 2);
  lax::DotOptions options;
  if ((dtype == DType::bfloat16 || dtype == DType::float16) && dice_.chance(30))
    options.preferred_element_type = DType::float32;
  Array result = lax::dot_general(x.array, y.array, numbers, options);
  require(fits(result.shape()));
  if (is_integer(dtype)) return made(result, std::exp2(bits(dtype)), {});
  return made(result, terms * x.bound * y.bound, (terms * y.bound) * x.error + (terms * x.bound) * y.error,
              units_of_sum(terms, dtype));
}

Value Generator::window(const Value& given) {
  const DType dtype = given.dtype();
  require(given.rank() > 0 && given.size() > 0 && !is_bool(dtype) && !is_complex(dtype) && !small_float(dtype));
  if (dice_.chance(35)) {
    require(is_floating(dtype));
    const int64_t width = std::min<int64_t>(given.size(), 64), taps = dice_.between(1, std::min<int64_t>(width, 5));
    Value x = tame(shaped(given, {1, 2, width}), 2), kernel = tame(like({3, 2, taps}, dtype), 2);
    lax::ConvOptions options;
    options.window_strides = {dice_.between(1, 2)};
    if (dice_.chance(50)) options.padding_mode = "SAME";
    const auto terms = static_cast<double>(2 * taps);
    return made(lax::conv_general_dilated(x.array, kernel.array, options), terms * x.bound * kernel.bound,
                (terms * kernel.bound) * x.error + (terms * x.bound) * kernel.error, units_of_sum(terms, dtype));
  }
  Ints window, strides;
  double terms = 1;
  for (int64_t length : given.shape()) {
    window.push_back(dice_.between(1, std::min<int64_t>(length, 3)));
    strides.push_back(dice_.between(1, 2));
    terms *= static_cast<double>(window.back());
  }
  lax::WindowOptions options;
  options.strides = strides;
  if (dice_.chance(60)) {
    // VALID: padding would put the end of the type's range into results.
    return made(dice_.chance(50) ? lax::reduce_window_max(given.array, window, options)
                                 : lax::reduce_window_min(given.array, window, options),
                given.bound, given.error);
  }
  options.padding_mode = "SAME";
  const double bound = is_integer(dtype) ? std::exp2(bits(dtype)) : terms * given.bound;
  return made(lax::reduce_window_sum(given.array, window, options), bound, terms * given.error,
              units_of_sum(terms, dtype));
}

}  // namespace capibara::random_programs
