// The elementwise operations of random programs, with the derivatives and bounds of their results.
#include "backends/cpu/random/random_generator.h"

#include <algorithm>
#include <cmath>

namespace capibara::random_programs {

namespace {

// A smooth function on [-limit, limit], or on |x| + shift if a shift is given.
struct Smooth {
  Array (*function)(const Array&);
  double limit;
  double shift;  // negative: none
  double slope, bound;
  double units;
};

constexpr double elementary = 8, special = 64;

const std::vector<Smooth>& smooth_functions() {
  static const std::vector<Smooth> list = {
      {lax::exp, 2, -1, 7.4, 7.4, elementary},
      {lax::exp2, 3, -1, 5.6, 8, elementary},
      {lax::expm1, 2, -1, 7.4, 6.4, elementary},
      {lax::log, 16, 0.5, 2, 2.9, elementary},
      {lax::log1p, 16, 0, 1, 2.9, elementary},
      {lax::log1p, 0.5, -1, 2, 0.7, elementary},
      {lax::tanh, 16, -1, 1, 1, elementary},
      {lax::logistic, 16, -1, 0.25, 1, elementary},
      {lax::sin, 16, -1, 1, 1, elementary},
      {lax::cos, 16, -1, 1, 1, elementary},
      {lax::tan, 1, -1, 3.5, 1.6, elementary},
      {lax::asin, 0.9, -1, 2.3, 1.2, elementary},
      {lax::acos, 0.9, -1, 2.3, 2.7, elementary},
      {lax::atan, 16, -1, 1, 1.6, elementary},
      {lax::sinh, 2, -1, 3.8, 3.7, elementary},
      {lax::cosh, 2, -1, 3.7, 3.8, elementary},
      {lax::asinh, 16, -1, 1, 3.5, elementary},
      {lax::acosh, 16, 1.5, 0.9, 3.6, elementary},
      {lax::atanh, 0.75, -1, 2.3, 1, elementary},
      {lax::rsqrt, 16, 0.25, 4, 2, elementary},
      {lax::cbrt, 16, 0.25, 0.9, 2.6, elementary},
      {lax::erf, 16, -1, 1.2, 1, elementary},
      {lax::erfc, 16, -1, 1.2, 2, elementary},
      {lax::erf_inv, 0.875, -1, 3.2, 1.1, special},
      {lax::lgamma, 8, 0.5, 2.2, 10, special},
      {lax::digamma, 8, 0.5, 5, 2.2, special},
      {lax::bessel_i0e, 8, -1, 1, 1, special},
      {lax::bessel_i1e, 8, -1, 1, 1, special},
      {lax::sqrt, 16, 0.25, 1, 4.1, 0},
  };
  return list;
}

}  // namespace

Value Generator::unary(const Value& x) {
  const DType dtype = x.dtype();
  if (is_bool(dtype)) return made(lax::bitwise_not(x.array), 1, {});
  if (is_integer(dtype)) return integer_unary(x);
  if (is_complex(dtype)) return complex_unary(x);
  return dice_.chance(55) ? smooth(x) : stepped(x);
}

Value Generator::smooth(const Value& given) {
  const Smooth& f = dice_.pick(smooth_functions());
  Value x = tame(given, f.limit);
  Array operand = x.array;
  if (f.shift >= 0) operand = lax::add(lax::abs(operand), number(x.dtype(), f.shift));
  ++equations_;
  Error error = f.slope * x.error;
  // The shift also rounds if the operand has an error.
  const double units = f.units + (x.exact() ? 0 : 1 + f.slope * (x.bound + f.shift) / f.bound);
  return made(f.function(operand), f.bound * (1 + 1e-2), error, units);
}

Value Generator::stepped(const Value& x) {
  const DType dtype = x.dtype();
  const int64_t choice = dice_.below(x.exact() ? 11 : 5);
  switch (choice) {
    case 0:
      return moved(lax::neg(x.array), x);
    case 1:
      return made(lax::abs(x.array), x.bound, x.error);
    case 2: {
      Value square = rounds(lax::square(x.array), x.bound * x.bound, 2 * x.bound * x.error);
      square.product = true;
      return square;
    }
    case 3: {
      Value small = tame(x, 2);
      const int64_t power = dice_.between(2, 4);
      const auto y = static_cast<double>(power);
      return made(lax::integer_pow(small.array, power), std::pow(small.bound, y),
                  y * std::pow(small.bound, y - 1) * small.error, y);
    }
    case 4: {
      Value small = tame(x, 4);
      const int64_t power = dice_.between(1, 2);
      const auto y = static_cast<double>(power);
      Array operand = lax::add(lax::abs(small.array), number(dtype, 0.5));
      return made(lax::integer_pow(operand, -power), std::exp2(y), y * std::exp2(y + 1) * small.error, 4 + 16 * y);
    }
    case 5:
      return made(lax::floor(x.array), x.bound + 1, {});
    case 6:
      return made(lax::ceil(x.array), x.bound + 1, {});
    case 7:
      return made(lax::round(x.array, dice_.chance(50) ? lax::RoundingMethod::away_from_zero
                                                       : lax::RoundingMethod::to_nearest_even),
                  x.bound + 1, {});
    case 8:
      return made(lax::sign(x.array), 1, {});
    case 9:
      return made(lax::is_finite(x.array), 1, {});
    default:
      require(bits(dtype) >= 16);
      return made(lax::reduce_precision(x.array, 5, dice_.between(2, 7)), 2 * x.bound, {});
  }
}

Value Generator::integer_unary(const Value& x) {
  const double any = std::exp2(bits(x.dtype()));
  switch (dice_.below(7)) {
    case 0:
      return made(lax::neg(x.array), is_unsigned(x.dtype()) ? any : x.bound, {});
    case 1:
      require(is_signed(x.dtype()));
      return made(lax::abs(x.array), x.bound, {});
    case 2:
      return made(lax::sign(x.array), 1, {});
    case 3:
      return made(lax::bitwise_not(x.array), any, {});
    case 4:
      return made(lax::population_count(x.array), 64, {});
    case 5:
      return made(lax::clz(x.array), 64, {});
    default:
      return made(lax::integer_pow(x.array, dice_.between(2, 3)), any, {});
  }
}

Value Generator::complex_unary(const Value& given) {
  switch (dice_.below(9)) {
    case 0:
      return made(lax::neg(given.array), given.bound, given.error);
    case 1:
      return made(lax::conj(given.array), given.bound, given.error);
    case 2:
      return moved(lax::real(given.array), given);
    case 3:
      return moved(lax::imag(given.array), given);
    case 4:
      return made(lax::abs(given.array), given.bound, given.error, elementary);
    case 5: {
      Value x = tame(given, 2);
      return made(lax::exp(x.array), 7.5, 7.5 * x.error, elementary);
    }
    case 6: {
      Value x = tame(given, 1);
      return made(dice_.chance(50) ? lax::sin(x.array) : lax::cos(x.array), 1.6, 1.6 * x.error, elementary);
    }
    case 7: {
      Value x = tame(given, 0.5);
      return made(lax::tanh(x.array), 0.6, 1.4 * x.error, elementary);
    }
    default: {
      // Away from the cut along the negative axis.
      Value x = tame(given, 1);
      Array moved_away = lax::add(x.array, number(x.dtype(), 2));
      return made(dice_.chance(50) ? lax::log(moved_away) : lax::sqrt(moved_away), 1.8, x.error, 2 * elementary);
    }
  }
}

Value Generator::compared(const Value& x, const Value& y) {
  require(x.exact() && y.exact());
  switch (dice_.below(is_complex(x.dtype()) ? 2 : 6)) {
    case 0:
      return made(lax::eq(x.array, y.array), 1, {});
    case 1:
      return made(lax::ne(x.array, y.array), 1, {});
    case 2:
      return made(lax::lt(x.array, y.array), 1, {});
    case 3:
      return made(lax::le(x.array, y.array), 1, {});
    case 4:
      return made(lax::gt(x.array, y.array), 1, {});
    default:
      return made(lax::ge(x.array, y.array), 1, {});
  }
}

Value Generator::divided(const Value& x, const Value& given) {
  Value y = tame(given, 8);
  Array divisor = lax::add(lax::abs(y.array), number(x.dtype(), 0.5));
  Error error = 2 * x.error + 4 * x.bound * y.error;
  if (x.exact() && y.exact() && dice_.chance(25)) return made(lax::rem(x.array, divisor), y.bound + 0.5, {});
  Value quotient = made(lax::div(x.array, divisor), 2 * x.bound, error, error.none() ? 2 : 20);
  quotient.product = true;  // by a constant, this becomes a product with the reciprocal
  return quotient;
}

Value Generator::binary(const Value& x) {
  const DType dtype = x.dtype();
  const bool scalar = dice_.chance(15) && x.rank() > 0;
  Value y = scalar ? constant(dtype, {}) : dice_.chance(8) ? x : like(x.shape(), dtype, x.exact() && dice_.chance(60));
  if (dice_.chance(10)) return compared(x, y);
  if (is_bool(dtype)) {
    switch (dice_.below(5)) {
      case 0:
        return made(lax::bitwise_and(x.array, y.array), 1, {});
      case 1:
        return made(lax::bitwise_or(x.array, y.array), 1, {});
      case 2:
        return made(lax::bitwise_xor(x.array, y.array), 1, {});
      case 3:
        return made(lax::max(x.array, y.array), 1, {});
      default:
        return made(lax::min(x.array, y.array), 1, {});
    }
  }
  const double greater = std::max(x.bound, y.bound);
  if (is_integer(dtype)) {
    const double any = std::exp2(bits(dtype));
    switch (dice_.below(13)) {
      case 0:
        return made(lax::add(x.array, y.array), is_unsigned(dtype) ? any : x.bound + y.bound, {});
      case 1:
        return made(lax::sub(x.array, y.array), is_unsigned(dtype) ? any : x.bound + y.bound, {});
      case 2:
        return made(lax::mul(x.array, y.array), any, {});
      case 3:
        return made(lax::div(x.array, y.array), any, {});  // division by zero has a defined result
      case 4:
        return made(lax::rem(x.array, y.array), any, {});
      case 5:
        return made(lax::max(x.array, y.array), greater, {});
      case 6:
        return made(lax::min(x.array, y.array), greater, {});
      case 7:
        return made(lax::bitwise_and(x.array, y.array), any, {});
      case 8:
        return made(lax::bitwise_or(x.array, y.array), any, {});
      case 9:
        return made(lax::bitwise_xor(x.array, y.array), any, {});
      case 10:
        return made(lax::shift_left(x.array, y.array), any, {});
      case 11:
        return made(lax::shift_right_arithmetic(x.array, y.array), any, {});
      default:
        return made(lax::shift_right_logical(x.array, y.array), any, {});
    }
  }
  switch (dice_.below(is_complex(dtype) ? 4 : 10)) {
    case 0:
      return summed(lax::add(x.array, y.array), x, y);
    case 1:
      return summed(lax::sub(x.array, y.array), x, y);
    case 2:
    case 4: {
      // Complex products are sums of products, which may be fused.
      const Error error = y.bound * x.error + x.bound * y.error;
      Value product = made(lax::mul(x.array, y.array), x.bound * y.bound, error,
                           is_complex(dtype) ? 4
                           : error.none()    ? 0
                                             : 1);
      product.product = true;
      return product;
    }
    case 3: {
      if (!is_complex(dtype)) return divided(x, y);
      Value small = tame(y, 1);
      Array divisor = lax::add(small.array, number(dtype, 2.5));
      return made(lax::div(x.array, divisor), x.bound, x.error + x.bound * small.error, elementary);
    }
    case 5:
      return made(lax::max(x.array, y.array), greater, greatest(x.error, y.error));
    case 6:
      return made(lax::min(x.array, y.array), greater, greatest(x.error, y.error));
    case 7: {
      Value base = tame(x, 2), exponent = tame(y, 2);
      Array raised = lax::pow(lax::add(lax::abs(base.array), number(dtype, 0.5)), exponent.array);
      return made(raised, 6.4, 16 * base.error + 6 * exponent.error, elementary + 8);
    }
    case 8: {
      Value side = tame(x, 4);
      Array right = lax::add(lax::abs(y.array), number(dtype, 0.5));
      return made(lax::atan2(side.array, right), 1.6, 2 * side.error + 2 * y.error, elementary + (y.exact() ? 0 : 20));
    }
    default: {
      if (x.exact() && y.exact() && bits(dtype) >= 16 && dice_.chance(30))
        return made(lax::nextafter(x.array, y.array), x.bound * 1.01, {});
      if (dtype == DType::float32 || dtype == DType::float64) {
        return made(lax::complex(x.array, y.array), x.bound + y.bound, greatest(x.error, y.error));
      }
      return summed(lax::sub(y.array, x.array), x, y);
    }
  }
}

Value Generator::choice(const Value& x) {
  const DType dtype = x.dtype();
  Value y = like(x.shape(), dtype);
  const int64_t kind = dice_.below(6);
  if (kind == 0 && !is_complex(dtype) && !is_bool(dtype)) {
    Value low = constant(dtype, {});
    Array high = lax::add(low.array, number(dtype, 3));
    return made(lax::clamp(low.array, x.array, high), std::max(11.0, x.bound), x.error);
  }
  if (kind == 1) {
    Value z = like(x.shape(), dtype);
    Value which = tame(converted(like(x.shape(), DType::uint8, true), DType::int32), 12);
    Array index = lax::rem(lax::abs(which.array), number(DType::int32, 3));
    return joined(lax::select_n(index, {x.array, y.array, z.array}), {x, y, z});
  }
  Value predicate = dice_.chance(20) ? converted(index_number(), DType::bool_) : like(x.shape(), DType::bool_, true);
  return joined(lax::select(predicate.array, x.array, y.array), {x, y});
}

Value Generator::conversion(const Value& x) {
  const DType dtype = any_dtype();
  if (x.exact() && !wild_ && dice_.chance(15)) {
    // Bits of numbers as integers; arbitrary bits as numbers would be unbounded, and NaN has several encodings.
    static const std::vector<std::pair<DType, DType>> pairs = {
        {DType::float32, DType::int32},  {DType::float32, DType::uint32}, {DType::float64, DType::int64},
        {DType::float16, DType::uint16}, {DType::bfloat16, DType::int16}, {DType::int32, DType::uint32},
        {DType::uint64, DType::int64},   {DType::int8, DType::uint8}};
    for (const auto& [from, to] : pairs) {
      if (x.dtype() == from) return made(lax::bitcast_convert_type(x.array, to), std::exp2(bits(to)), {});
    }
  }
  require(dtype != x.dtype());
  return converted(x, dtype);
}

Value Generator::creation(const Value&) {
  Shape shape = any_shape(3);
  DType dtype = any_dtype();
  if (shape.empty() || is_bool(dtype) || dice_.chance(20)) return constant(dtype, shape);
  const int64_t dimension = dice_.below(static_cast<int64_t>(shape.size()));
  const int64_t length = shape[static_cast<std::size_t>(dimension)];
  // Small floats represent only small integers exactly.
  if (is_inexact(dtype) && bits(real_dtype(dtype)) < 32) require(length <= 16);
  Value x = made(lax::broadcasted_iota(dtype, shape, dimension), static_cast<double>(length), {});
  return is_inexact(dtype) ? tame(x, 16) : x;
}

}  // namespace capibara::random_programs
