// Values of random programs: drawing them, keeping them small, converting and reshaping them to an operation's
// operands.
#include "backends/cpu/random/random_generator.h"

#include "core/array/element.h"
#include "program/trace/stage.h"

#include <capibara/config.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace capibara::random_programs {

namespace {

constexpr double ordinary = 16;  // larger values are scaled down before they are kept

Shape without_units(const Shape& shape) {
  Shape result;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(result), [](int64_t n) { return n != 1; });
  return result;
}

}  // namespace

Error greatest(const Error& a, const Error& b) {
  return {std::max(a.own, b.own), {std::max(a.gain[0], b.gain[0]), std::max(a.gain[1], b.gain[1])}};
}

Array array_of(const ArrayType& type, const std::vector<double>& parts) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type.size() * storage_size(type.dtype)));
  const DType from = is_complex(type.dtype) ? DType::complex128 : DType::float64;
  convert_elements(from, parts.data(), type.dtype, buffer.mutable_data(), type.size());
  return Array::from_buffer(type, std::move(buffer));
}

Value Generator::made(const Array& array, double bound, const Error& error, double units) {
  ++equations_;
  Value value{array, bound, error};
  const DType dtype = array.dtype();
  if (!is_inexact(dtype)) {
    value.error = {};
    if (dtype == DType::bool_)
      value.bound = 1;
    else
      value.bound = std::min(bound, std::ldexp(1.0, bits(dtype)));
    return value;
  }
  if (units > 0) {
    const FloatInfo info = finfo(real_dtype(dtype));
    if (info.bits < 32 && units > 1.2 && units <= 64) units = 1.2;
    value.error.own += units * (info.eps * bound + (info.bits < 32 ? info.smallest_subnormal : info.tiny));
  }
  return value;
}

Value Generator::moved(const Array& array, const Value& from) { return joined(array, {from}); }

Value Generator::joined(const Array& array, std::initializer_list<Value> parts) {
  double bound = 0;
  Error error;
  bool product = false;
  for (const Value& part : parts) {
    bound = std::max(bound, part.bound);
    error = greatest(error, part.error);
    product |= part.product;
  }
  Value value = made(array, bound, error);
  value.product = product;
  return value;
}

Value Generator::summed(const Array& array, const Value& x, const Value& y) {
  const Error error = x.error + y.error;
  const bool fused = x.product || y.product;
  return made(array, x.bound + y.bound, error, fused || !error.none() ? 1 : 0);
}

Array Generator::number(DType dtype, double value) {
  // Compiled programs, like XLA's, leave complex numbers times one unchanged, including infinities; the definition
  // gives NaN for some.
  if (is_complex(dtype) && value == 1) value = 0.75;
  return array_of(ArrayType{{}, dtype, false, false, {}}, {value, 0});
}

Value Generator::constant(DType dtype, const Shape& shape) {
  double value = static_cast<double>(dice_.between(-8, 8)) / (is_inexact(dtype) ? 4 : 1);
  if (is_unsigned(dtype) || is_bool(dtype)) value = std::abs(value);
  if (is_bool(dtype)) value = std::min(value, 1.0);
  Array scalar = number(dtype, value);
  return made(shape.empty() ? scalar : lax::broadcast(scalar, shape), 8, {});
}

// Later values are drawn more often, which makes programs deep.
Value Generator::pick() {
  const double place = dice_.chance(20) ? 0 : dice_.real(0, 1);
  const auto count = static_cast<double>(scope_->pool.size());
  const auto index =
      scope_->pool.size() - 1 - static_cast<std::size_t>(std::min(count - 1, std::floor(count * place * place)));
  ++scope_->uses[index];
  return scope_->pool[index];
}

Value Generator::pick_exact() {
  for (int tries = 0; tries < 8; ++tries) {
    Value value = pick();
    if (value.exact()) return value;
  }
  return creation(pick());
}

Value Generator::pick_of(DType dtype, bool exact) {
  for (int tries = 0; tries < 12; ++tries) {
    Value value = pick();
    if (value.dtype() == dtype && (value.exact() || !exact)) return value;
  }
  return converted(exact || !is_inexact(dtype) ? pick_exact() : pick(), dtype);
}

Value Generator::tame(const Value& x, double limit) {
  if (x.bound <= limit) return x;
  const DType dtype = x.dtype();
  if (is_bool(dtype)) return x;
  if (is_integer(dtype)) {
    const double divisor = std::min(13.0, std::floor(limit) + 1);
    return made(lax::rem(x.array, number(dtype, divisor)), divisor - 1, {});
  }
  if (is_floating(dtype) && dice_.chance(25)) {
    Array low = number(dtype, -limit), high = number(dtype, limit);
    // The bound itself must be representable in the type.
    const double rounded = high.item<double>();
    if (rounded <= limit) return made(lax::clamp(low, x.array, high), limit, x.error);
  }
  const double factor = std::exp2(-std::ceil(std::log2(x.bound / limit)));
  return rounds(lax::mul(x.array, number(dtype, factor)), x.bound * factor, factor * x.error);
}

Value Generator::converted(const Value& x, DType dtype) {
  const DType from = x.dtype();
  if (from == dtype) return x;
  if (is_complex(from) && !is_complex(dtype)) return converted(moved(lax::real(x.array), x), dtype);
  if (!is_inexact(dtype)) {
    require(x.exact());
    if (is_bool(dtype) && dice_.chance(50)) return made(lax::ne(x.array, number(from, 0)), 1, {});
    double bound = x.bound;
    if (is_unsigned(dtype) && !is_bool(from)) bound = std::ldexp(1.0, bits(dtype));
    return made(lax::convert_element_type(x.array, dtype), bound, {});
  }
  if (is_integer(from) && x.bound > ordinary) {
    const bool wide =
        real_dtype(dtype) == DType::float32 || real_dtype(dtype) == DType::float64 || dtype == DType::bfloat16;
    if (!wide || dice_.chance(50)) return converted(tame(x, 12), dtype);
    return tame(made(lax::convert_element_type(x.array, dtype), 2 * x.bound, {}), ordinary);
  }
  const bool narrows = is_inexact(from) && finfo(real_dtype(dtype)).eps > finfo(real_dtype(from)).eps;
  return made(lax::convert_element_type(x.array, dtype), x.bound, x.error, narrows && !x.exact() ? 1 : 0);
}

Value Generator::shaped(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int64_t have = x.size(), want = element_count(shape);
  if (have == want) return moved(lax::reshape(x.array, shape), x);
  if (have == 0) return constant(x.dtype(), shape);
  if (have == 1) return moved(lax::broadcast_in_dim(lax::reshape(x.array, {}), shape, {}), x);
  // Matches the dimensions of x, in order, with those of the shape.
  const Shape dims = without_units(x.shape());
  Ints places;
  for (std::size_t d = 0; d < shape.size() && places.size() < dims.size(); ++d) {
    if (shape[d] == dims[places.size()]) places.push_back(static_cast<int64_t>(d));
  }
  if (places.size() == dims.size()) {
    return moved(lax::broadcast_in_dim(lax::reshape(x.array, dims), shape, places), x);
  }
  Array flat = lax::reshape(x.array, {have});
  switch (want > 0 ? dice_.below(10) : 0) {
    case 0:
    case 1:
    case 2:
    case 3: {
      Array padded = lax::pad(flat, number(x.dtype(), is_bool(x.dtype()) ? 0 : 1), {{0, want - have, 0}});
      return joined(lax::reshape(padded, shape), {x, Value{padded, 1, {}}});
    }
    case 4: {
      Array one = lax::slice(flat, {dice_.below(have)}, {have}, {have});
      return moved(lax::broadcast_in_dim(lax::reshape(one, {}), shape, {}), x);
    }
    case 5:
    case 6:
    case 7:
    case 8:
      return moved(lax::reshape(repeated(moved(flat, x), want).array, shape), x);
    default: {
      if (is_complex(x.dtype()) || is_bool(x.dtype()))
        return moved(lax::broadcast_in_dim(lax::reshape(lax::slice(flat, {0}, {1}), {}), shape, {}), x);
      return moved(lax::broadcast_in_dim(lax::reduce_max(flat, {{0}}), shape, {}), x);
    }
  }
}

// The elements of a vector, repeated.
Value Generator::repeated(const Value& flat, int64_t count) {
  const int64_t length = flat.size();
  if (dice_.chance(40)) {
    const int64_t copies = (count + length - 1) / length;
    Array tiled = lax::reshape(lax::broadcast_in_dim(flat.array, {copies, length}, {1}), {copies * length});
    return moved(lax::slice(tiled, {0}, {count}), flat);
  }
  Array places = lax::rem(lax::iota(DType::int32, count), number(DType::int32, static_cast<double>(length)));
  GatherDimensionNumbers numbers;
  numbers.collapsed_slice_dims = {0};
  numbers.start_index_map = {0};
  lax::GatherOptions options;
  options.mode = lax::GatherScatterMode::promise_in_bounds;
  return moved(lax::gather(flat.array, lax::reshape(places, {count, 1}), numbers, {1}, options), flat);
}

Value Generator::like(const Shape& shape, DType dtype, bool exact) {
  if (dice_.chance(12)) return constant(dtype, shape);
  return shaped(pick_of(dtype, exact), shape);
}

Value Generator::index_number() {
  if (dice_.chance(40)) return made(number(DType::int32, static_cast<double>(dice_.between(-3, 9))), 9, {});
  Value x = pick_exact();
  require(x.size() > 0);
  Array one = lax::reshape(lax::slice(lax::reshape(x.array, {x.size()}), {0}, {1}), {});
  return converted(moved(one, x), DType::int32);
}

int64_t Generator::axis_of(const Value& x) {
  require(x.rank() > 0);
  return dice_.below(x.rank());
}

bool Generator::fits(const Shape& shape) const {
  // An empty array may be padded, so its other dimensions count too.
  int64_t elements = scope_->repeats;
  for (int64_t size : shape) elements *= std::max<int64_t>(1, size);
  return elements <= max_elements_;
}

void Generator::keep(const Value& given) {
  Value value = given;
  if (is_inexact(value.dtype()) && value.bound > ordinary) value = tame(value, ordinary);
  // A value with a large relative error is useless.
  const double allowed = is_inexact(value.dtype()) && finfo(real_dtype(value.dtype())).eps > 1e-5 ? 0.1 : 1e-3;
  if (value.error.own > allowed * std::max(value.bound, 0.1)) return;
  if (value.error.gain[0] > 1e3 || value.error.gain[1] > 1e3) return;
  if (!fits(value.shape())) return;
  scope_->pool.push_back(value);
  scope_->uses.push_back(0);
}

Shape Generator::any_shape(int64_t max_rank) {
  Shape shape(static_cast<std::size_t>(dice_.between(0, max_rank)));
  for (int64_t& size : shape) size = dice_.pick(sizes_);
  while (!shape.empty() && !fits(shape)) shape.pop_back();
  return shape;
}

void Generator::steps(int count) {
  for (int i = 0; i < count && equations_ < max_equations_; ++i) {
    try {
      keep(step(pick()));
    } catch (const Unfit&) {
    }
  }
}

Value Generator::step(const Value& x) {
  static const Entry entries[] = {
      {18, 12, &Generator::unary},       {22, 14, &Generator::binary},      {6, 4, &Generator::choice},
      {7, 4, &Generator::conversion},    {3, 4, &Generator::creation},      {20, 14, &Generator::movement},
      {9, 8, &Generator::indexed},       {11, 8, &Generator::reduction},    {5, 3, &Generator::row_pattern},
      {3, 6, &Generator::cumulative},    {3, 3, &Generator::sorted},        {5, 8, &Generator::contraction},
      {2, 1, &Generator::window},        {9, 9, &Generator::control},       {0, 8, &Generator::sliding_window},
      {0, 7, &Generator::convolution},   {0, 7, &Generator::gather_places}, {0, 7, &Generator::scatter_places},
      {0, 3, &Generator::extreme_place}, {0, 2, &Generator::draws},         {0, 3, &Generator::copies},
  };
  auto weight = [&](const Entry& entry) { return kind_ == Kind::any ? entry.weight : entry.on_meshes; };
  int total = 0;
  for (const Entry& entry : entries) total += weight(entry);
  int64_t place = dice_.below(total);
  for (const Entry& entry : entries) {
    place -= weight(entry);
    if (place < 0) return (this->*entry.operation)(x);
  }
  throw Unfit{};
}

// ---- whole programs -------------------------------------------------------------------------------------------------

Generator::Generator(uint64_t seed, Kind kind) : seed_(seed), kind_(kind), dice_(seed) {
  static const std::vector<DType> all = {
      DType::float32, DType::float32, DType::float32,   DType::float32,       DType::float32,     DType::float64,
      DType::float64, DType::float16, DType::bfloat16,  DType::bfloat16,      DType::int32,       DType::int32,
      DType::bool_,   DType::int8,    DType::int16,     DType::int64,         DType::uint8,       DType::uint16,
      DType::uint32,  DType::uint64,  DType::complex64, DType::float8_e4m3fn, DType::float8_e5m2, DType::complex128};
  static const Ints ordinary_sizes = {1, 2, 3, 3, 4, 5, 7, 8, 13, 16, 17, 31, 64, 65};
  static const Ints long_sizes = {1, 3, 17, 127, 257, 1000, 5000};
  static const Ints large_sizes = {1, 3, 65, 300, 512, 1000, 4099};
  static const std::vector<DType> smooth = {DType::float64, DType::float64, DType::float64, DType::int32, DType::bool_};
  static const Ints divisible_sizes = {2, 4, 6, 8, 8, 12, 16, 16, 24, 48};
  const int64_t dtypes = dice_.between(2, 4), sizes = dice_.between(2, 4);
  for (int64_t i = 0; i < dtypes; ++i) dtypes_.push_back(dice_.pick(kind == Kind::smooth ? smooth : all));
  const int64_t scale = dice_.below(20);
  const bool any = kind == Kind::any;
  const Ints& list = !any ? divisible_sizes : scale == 0 ? large_sizes : scale < 6 ? long_sizes : ordinary_sizes;
  for (int64_t i = 0; i < sizes; ++i) sizes_.push_back(dice_.pick(list));
  if (dice_.chance(6)) sizes_.push_back(any ? 0 : dice_.pick(ordinary_sizes));
  max_elements_ = !any ? 4096 : scale == 0 ? 320000 : 16384;
  max_equations_ = static_cast<int>(dice_.between(4, any ? 45 : 24));
  wild_ = dice_.chance(12) && kind != Kind::smooth;
  if (kind == Kind::smooth) dtypes_.push_back(DType::float64);
}

RandomProgram Generator::make() {
  RandomProgram result;
  result.seed = seed_;
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);

  Scope outer;
  scope_ = &outer;
  std::vector<ArrayType> types;
  const int64_t count = dice_.between(1, 5);
  for (int64_t i = 0; i < count; ++i)
    types.push_back(ArrayType{any_shape(i == 0 ? 3 : 4), any_dtype(), false, false, {}});
  if (kind_ == Kind::smooth) types[0].dtype = DType::float64;
  std::vector<double> bounds;
  for (const ArrayType& type : types) {
    // Inputs: reals in [-2, 2], small integers or integers of any size.
    double low = -2, high = 2;
    const bool wide = is_integer(type.dtype) && dice_.chance(30);
    if (is_integer(type.dtype)) {
      const IntInfo info = iinfo(type.dtype);
      low = std::max(wide ? -1e15 : -9.0, static_cast<double>(info.min));
      high = std::min(wide ? 1e15 : 9.0, static_cast<double>(info.max));
    }
    if (is_bool(type.dtype)) low = 0, high = 1;
    std::vector<double> parts(static_cast<std::size_t>(type.size()) * (is_complex(type.dtype) ? 2 : 1));
    for (double& part : parts)
      part = is_inexact(type.dtype) ? dice_.real(low, high) : std::floor(dice_.real(low, high + 1));
    for (double& part : parts) part = std::min(part, high);
    if (wild_ && is_inexact(type.dtype)) {
      const FloatInfo info = finfo(real_dtype(type.dtype));
      const double infinity = info.has_infinity ? std::numeric_limits<double>::infinity() : 0;
      // Denormals of float32 and wider are flushed by some operations and kept by others.
      const double small = type.dtype == DType::float16 || info.bits == 8 ? info.smallest_subnormal : info.tiny;
      const double specials[] = {std::nan(""), infinity, -infinity, 0.0, -0.0, small, 1.0, -1.0};
      for (double& part : parts) {
        if (dice_.chance(8)) part = specials[dice_.below(std::size(specials))];
      }
    }
    result.inputs.push_back(array_of(type, parts));
    bounds.push_back(is_complex(type.dtype) ? 3 : std::max(high, -low));
  }

  std::vector<Value> outputs;
  auto body = [&](std::span<const Array> arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      outer.pool.push_back({arrays[i], bounds[i], {}});
      outer.uses.push_back(0);
    }
    equations_ = 0;
    steps(100);
    // Unused values become outputs, and so do some of the used ones.
    for (std::size_t i = outer.pool.size(); i-- > 0 && outputs.size() < 12;) {
      const bool input = i < arrays.size();
      if (dice_.chance(input ? 8 : outer.uses[i] == 0 ? 85 : 12)) outputs.push_back(outer.pool[i]);
    }
    if (outputs.empty()) outputs.push_back(outer.pool.back());
    if (dice_.chance(8)) outputs.push_back(dice_.pick(outputs));
    Arrays flat;
    for (const Value& value : outputs) flat.push_back(value.array);
    return flat;
  };
  result.program = stage(body, types, "random").program;
  scope_ = nullptr;
  for (const Value& value : outputs) result.tolerances.push_back(value.error.own);
  return result;
}

RandomProgram make_random_program(uint64_t seed, Kind kind) { return Generator(seed, kind).make(); }

}  // namespace capibara::random_programs
