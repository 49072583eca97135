// Numbers of generated code as abstract values: a math/ template called with Number emits loop form.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/loops/builder.h"
#include "lax/math/error_function.h"
#include "lax/math/lanes_circular.h"
#include "lax/math/lanes_power.h"
#include "lax/math/threefry.h"
#include "lax/math/value.h"

namespace capibara::cpu {

// A float of 32 or 64 bits.
struct Number {
  Builder* builder;
  Value value;
};

inline Number operator+(Number a, Number b) { return {a.builder, a.builder->compute(Op::add, a.value, b.value)}; }
inline Number operator-(Number a, Number b) { return {a.builder, a.builder->compute(Op::sub, a.value, b.value)}; }
inline Number operator*(Number a, Number b) { return {a.builder, a.builder->compute(Op::mul, a.value, b.value)}; }
inline Number operator/(Number a, Number b) { return {a.builder, a.builder->compute(Op::div, a.value, b.value)}; }
inline Number operator-(Number a) { return {a.builder, a.builder->compute(Op::neg, a.value)}; }

// An i1.
struct Truth {
  Builder* builder;
  Value value;
};

inline Truth logical_and(Truth a, Truth b) { return {a.builder, a.builder->compute(Op::bit_and, a.value, b.value)}; }
inline Truth logical_or(Truth a, Truth b) { return {a.builder, a.builder->compute(Op::bit_or, a.value, b.value)}; }
inline Truth logical_not(Truth a) {
  return {a.builder, a.builder->compute(Op::bit_xor, a.value, a.builder->constant_int(Scalar::i1, 1))};
}

// A 32-bit word.
struct Word {
  Builder* builder;
  Value value;
};

inline Word operator+(Word a, Word b) { return {a.builder, a.builder->compute(Op::add, a.value, b.value)}; }
inline Word operator^(Word a, Word b) { return {a.builder, a.builder->compute(Op::bit_xor, a.value, b.value)}; }

}  // namespace capibara::cpu

namespace capibara::math {

template <>
struct BitOperations<cpu::Word> {
  static cpu::Word constant(std::uint32_t value, const cpu::Word& like) {
    return {like.builder, like.builder->constant_int(cpu::Scalar::i32, value)};
  }
  static cpu::Word rotate_left(cpu::Word x, int amount) {
    cpu::Builder& b = *x.builder;
    const auto shifted = [&](cpu::Op op, int places) {
      return b.compute(op, x.value, b.constant_int(cpu::Scalar::i32, places));
    };
    return {&b, b.compute(cpu::Op::bit_or, shifted(cpu::Op::shift_left, amount),
                          shifted(cpu::Op::shift_right_logical, 32 - amount))};
  }
};

template <>
struct Operations<cpu::Number> {
  using V = cpu::Number;
  using Condition = cpu::Truth;
  using Op = cpu::Op;
  using Scalar = cpu::Scalar;

  static bool is_double(const V& like) { return like.builder->type(like.value) == Scalar::f64; }
  static V constant(double value, const V& like) {
    return {like.builder, like.builder->constant(like.builder->type(like.value), value)};
  }

  static V abs(V x) { return unary(Op::abs, x); }
  static V sqrt(V x) { return unary(Op::sqrt, x); }
  static V rsqrt(V x) { return constant(1, x) / sqrt(x); }
  static V floor(V x) { return unary(Op::floor, x); }
  static V ceil(V x) { return unary(Op::ceil, x); }
  static V truncate(V x) { return unary(Op::truncate, x); }
  static V round_nearest_even(V x) { return unary(Op::round_even, x); }
  // Halves are rounded away from zero.
  static V round(V x) {
    V whole = truncate(x), one = constant(1, x);
    V up = select(ge(abs(x - whole), constant(0.5, x)), one, constant(0, x));
    return copysign(abs(whole) + up, x);
  }
  static V multiply_add(V x, V y, V z) { return {x.builder, x.builder->compute(Op::fma, x.value, y.value, z.value)}; }
  static V copysign(V magnitude, V sign) { return binary(Op::copysign, magnitude, sign); }
  static V maximum(V x, V y) { return binary(Op::maximum, x, y); }
  static V minimum(V x, V y) { return binary(Op::minimum, x, y); }

  static Condition lt(V x, V y) { return compare(Op::lt, x, y); }
  static Condition le(V x, V y) { return compare(Op::le, x, y); }
  static Condition gt(V x, V y) { return compare(Op::gt, x, y); }
  static Condition ge(V x, V y) { return compare(Op::ge, x, y); }
  static Condition eq(V x, V y) { return compare(Op::eq, x, y); }
  static Condition ne(V x, V y) { return compare(Op::ne, x, y); }
  static Condition is_finite(V x) { return lt(abs(x), constant(infinity, x)); }
  static V select(Condition condition, V yes, V no) {
    return {yes.builder, yes.builder->compute(Op::select, condition.value, yes.value, no.value)};
  }

  // x = mantissa(x) * 2^exponent(x) with a mantissa in [0.5, 1), for normal x > 0; unspecified for others.
  static V exponent(V x) {
    const Layout like = layout(x);
    cpu::Builder& b = *x.builder;
    const cpu::Value field = b.compute(Op::shift_right_logical, bits_of(x), b.constant_int(like.integer, like.digits));
    const cpu::Value unbiased = b.compute(Op::sub, field, b.constant_int(like.integer, like.bias - 1));
    return {&b, b.convert(Op::signed_to_float, like.type, unbiased)};
  }
  static V mantissa(V x) {
    const Layout like = layout(x);
    cpu::Builder& b = *x.builder;
    const std::int64_t fraction = (std::int64_t{1} << like.digits) - 1, half = (like.bias - 1) << like.digits;
    const cpu::Value low = b.compute(Op::bit_and, bits_of(x), b.constant_int(like.integer, fraction));
    return from_bits(b, like.type, b.compute(Op::bit_or, low, b.constant_int(like.integer, half)));
  }
  // 2^n for an integer n of normal range, 0 for the one below; else unspecified. Adding a large number leaves n in the
  // low bits: x86_64 has no saturating vector conversion to integers, and before AVX-512 none to 64 bits.
  static V power_of_two(V n) {
    const Layout like = layout(n);
    cpu::Builder& b = *n.builder;
    const V sum = n + constant(static_cast<double>((std::int64_t{3} << (like.digits - 1)) + like.bias), n);
    return from_bits(b, like.type, b.compute(Op::shift_left, bits_of(sum), b.constant_int(like.integer, like.digits)));
  }

  // Tests one bit of the representation, counted from the last; negates x where z has that bit.
  static Condition has_bit(V z, int bit) {
    cpu::Builder& b = *z.builder;
    const Scalar integer = layout(z).integer;
    const cpu::Value here = b.compute(Op::bit_and, bits_of(z), b.constant_int(integer, std::int64_t{1} << bit));
    return {&b, b.compute(Op::ne, here, b.constant_int(integer, 0))};
  }
  static V negated_by_bit(V x, V z, int bit) {
    cpu::Builder& b = *x.builder;
    const Layout like = layout(x);
    const cpu::Value word = b.convert(Op::narrow, like.integer, bits_of(z));
    const cpu::Value here = b.compute(Op::bit_and, word, b.constant_int(like.integer, std::int64_t{1} << bit));
    const int places = 8 * cpu::byte_size(like.integer) - 1 - bit;
    const cpu::Value sign = b.compute(Op::shift_left, here, b.constant_int(like.integer, places));
    return from_bits(b, like.type, b.compute(Op::bit_xor, bits_of(x), sign));
  }

  // exp of single precision reaches zero without help (see elementary::exp); that of double precision is flushed.
  static V exp(V x) {
    V power = elementary::exp(x);
    if (!is_double(x)) return power;
    return select(lt(power, constant(smallest_normal(x), x)), constant(0, x), power);
  }
  static V expm1(V x) { return elementary::expm1(x); }
  static V log(V x) { return elementary::log(x); }
  static V log1p(V x) { return elementary::log1p(x); }
  static V tanh(V x) { return elementary::tanh(x); }
  static V log_double(V x) { return in_lanes::log(x); }
  static V sin(V x) { return in_lanes::sin(x); }
  static V cos(V x) { return in_lanes::cos(x); }
  static V tan(V x) { return in_lanes::tan(x); }
  static V atan2(V y, V x) { return in_lanes::atan2(y, x); }
  static V pow(V x, V y) { return in_lanes::pow(x, y); }
  static V cbrt(V x) { return in_lanes::cbrt(x); }
  static V rem(V x, V y) { return in_lanes::rem(x, y); }
  static V erf(V x) { return in_lanes::erf(x); }

  using Wide = V;
  static V widen(V x) { return convert(Scalar::f64, x); }
  static V narrow(V x, const V& like) { return convert(like.builder->type(like.value), x); }
  static V library_sin(V x) { return call(cpu::Math::sin, x); }
  static V library_cos(V x) { return call(cpu::Math::cos, x); }
  static V library_tan(V x) { return call(cpu::Math::tan, x); }
  static V library_rem(V x, V y) { return call(cpu::Math::fmod, x, y); }
  template <class Other>
  static V rarely(Condition condition, V value, Other&& other) {
    cpu::Builder& b = *value.builder;
    const auto results = b.branch(
        condition.value, [&] { return std::vector{other().value}; }, [&] { return std::vector{value.value}; });
    return {&b, results[0]};
  }

 private:
  struct Layout {
    Scalar type, integer;
    int digits;         // of the fraction field
    std::int64_t bias;  // of the exponent field
  };
  static Layout layout(const V& like) {
    return is_double(like) ? Layout{Scalar::f64, Scalar::i64, 52, 1023} : Layout{Scalar::f32, Scalar::i32, 23, 127};
  }
  static cpu::Value bits_of(V x) { return x.builder->convert(Op::bitcast, layout(x).integer, x.value); }
  static V from_bits(cpu::Builder& b, Scalar type, cpu::Value bits) { return {&b, b.convert(Op::bitcast, type, bits)}; }
  static V unary(Op op, V x) { return {x.builder, x.builder->compute(op, x.value)}; }
  static V binary(Op op, V x, V y) { return {x.builder, x.builder->compute(op, x.value, y.value)}; }
  static V convert(Scalar to, V x) { return {x.builder, x.builder->convert(Op::float_convert, to, x.value)}; }
  static Condition compare(Op op, V x, V y) { return {x.builder, x.builder->compute(op, x.value, y.value)}; }
  static V call(cpu::Math function, V x) { return {x.builder, x.builder->call(function, x.value)}; }
  static V call(cpu::Math function, V x, V y) { return {x.builder, x.builder->call(function, x.value, y.value)}; }
};

}  // namespace capibara::math
