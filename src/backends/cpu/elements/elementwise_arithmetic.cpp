// Arithmetic in loop form: sums, products, quotients, powers, rounding, signs, extrema.
#include <capibara/error.h>

#include <bit>
#include <cmath>

#include "backends/cpu/elements/elementwise.h"
#include "lax/math/complex_roots.h"
#include "lax/math/exponential.h"

namespace capibara::cpu {

namespace {

int bit_width(Scalar type) { return 8 * byte_size(type); }

Value zero_of(const Call& call) { return call.b.constant_int(call.b.type(call.value(0)), 0); }
Value number_of(const Call& call, int64_t value) { return call.b.constant_int(call.b.type(call.value(0)), value); }
Value choose(const Call& call, Value condition, Value yes, Value no) {
  return call.b.compute(Op::select, condition, yes, no);
}

// ---- signs --------------------------------------------------------------------------------------------------------

// Works on the bits in memory, so that rounding again flushes no denormal of bfloat16.
Element change_sign_bit(const Call& call, Op op, Op bits_op) {
  Element result(call.b.compute(op, call.value(0)));
  const DType dtype = call.type();
  if (call.in[0].stored == no_value || bits(dtype) < 16) return result;
  const Value word = call.b.convert(Op::bitcast, Scalar::i16, call.in[0].stored);
  const Value mask = call.b.constant_int(Scalar::i16, bits_op == Op::bit_xor ? 0x8000 : 0x7fff);
  result.stored = call.b.convert(Op::bitcast, stored_type(dtype), call.b.compute(bits_op, word, mask));
  return result;
}

Element negate_real(const Call& call) { return change_sign_bit(call, Op::neg, Op::bit_xor); }
Element absolute_real(const Call& call) { return change_sign_bit(call, Op::abs, Op::bit_and); }

Element negate_integer(const Call& call) { return Element(call.b.compute(Op::sub, zero_of(call), call.value(0))); }

Element absolute_integer(const Call& call) {
  if (is_unsigned(call.type())) return call.in[0];
  const Value negative = call.b.compute(Op::lt, call.value(0), zero_of(call));
  return Element(choose(call, negative, negate_integer(call).parts[0], call.value(0)));
}

Element sign_integer(const Call& call) {
  const Value x = call.value(0), zero = zero_of(call), one = number_of(call, 1);
  const Value positive = choose(call, call.b.compute(Op::ne, x, zero), one, zero);
  if (is_unsigned(call.type())) return Element(positive);
  return Element(choose(call, call.b.compute(Op::lt, x, zero), number_of(call, -1), positive));
}

// ---- rounding -----------------------------------------------------------------------------------------------------

// The hardware flushes denormals to zero, as jax does.
Element floor_real(const Call& call) { return Element(call.b.compute(Op::floor, call.value(0))); }
Element ceil_real(const Call& call) { return Element(call.b.compute(Op::ceil, call.value(0))); }

Element round_real(const Call& call) {
  const bool to_even = call.attrs.integer("rounding_method") == 1;
  return element_of(to_even ? math::round_nearest_even(call.number(0)) : math::round(call.number(0)));
}

// ---- integers -----------------------------------------------------------------------------------------------------

// The divisor, or 1 where the hardware defines no quotient.
struct Divisor {
  Value safe, is_zero, is_minus_one;
};
Divisor divisor(const Call& call) {
  Builder& b = call.b;
  const Value y = call.value(1), one = number_of(call, 1);
  Divisor result{y, b.compute(Op::eq, y, zero_of(call)), no_value};
  result.safe = choose(call, result.is_zero, one, y);
  if (is_signed(call.type())) {
    result.is_minus_one = b.compute(Op::eq, y, number_of(call, -1));
    result.safe = choose(call, result.is_minus_one, one, result.safe);
  }
  return result;
}

Element divide_integer(const Call& call) {
  Builder& b = call.b;
  const bool is_signed_type = is_signed(call.type());
  const Divisor by = divisor(call);
  Value quotient = b.compute(is_signed_type ? Op::divide_signed : Op::divide_unsigned, call.value(0), by.safe);
  if (is_signed_type) quotient = choose(call, by.is_minus_one, negate_integer(call).parts[0], quotient);
  return Element(choose(call, by.is_zero, number_of(call, -1), quotient));
}

Element remainder_integer(const Call& call) {
  Builder& b = call.b;
  const bool is_signed_type = is_signed(call.type());
  const Divisor by = divisor(call);
  // With divisor 1 the remainder is 0, as it is for -1.
  const Value rest = b.compute(is_signed_type ? Op::remainder_signed : Op::remainder_unsigned, call.value(0), by.safe);
  return Element(choose(call, by.is_zero, call.value(0), rest));
}

// By repeated squaring, one bit of the exponent at a time.
Element power_integer(const Call& call) {
  Builder& b = call.b;
  const Value x = call.value(0), y = call.value(1), zero = zero_of(call), one = number_of(call, 1);
  const int places = std::min(bit_width(b.type(x)), bits(call.type())) - (is_signed(call.type()) ? 1 : 0);
  Value product = one, square = x;
  for (int i = 0; i < places; ++i) {
    if (i > 0) square = b.compute(Op::mul, square, square);
    const Value bit = b.compute(Op::bit_and, y, number_of(call, int64_t{1} << i));
    product = choose(call, b.compute(Op::ne, bit, zero), b.compute(Op::mul, product, square), product);
  }
  if (is_unsigned(call.type())) return Element(product);
  // Negative powers truncate: only those of 1 and -1 are nonzero; 0 gives all ones.
  const Value minus_one = number_of(call, -1);
  const Value odd = b.compute(Op::ne, b.compute(Op::bit_and, y, one), zero);
  Value inverse = choose(call, b.compute(Op::eq, x, zero), minus_one, zero);
  inverse = choose(call, b.compute(Op::eq, x, minus_one), choose(call, odd, minus_one, one), inverse);
  inverse = choose(call, b.compute(Op::eq, x, one), one, inverse);
  return Element(choose(call, b.compute(Op::lt, y, zero), inverse, product));
}

struct Integer {
  const Call* call;
  Value value;
};
Integer operator*(Integer a, Integer b) { return {a.call, a.call->b.compute(Op::mul, a.value, b.value)}; }
// Only 1 / x is used.
Integer operator/(Integer one, Integer x) {
  const Call& call = *x.call;
  return {&call, choose(call, call.b.compute(Op::eq, x.value, one.value), one.value, zero_of(call))};
}

Element fixed_power_integer(const Call& call) {
  const Integer x{&call, call.value(0)}, one{&call, number_of(call, 1)};
  return Element(math::integer_pow<Integer>(x, call.attrs.integer("y"), one).value);
}

Value extended(const Call& call, Value x, Scalar to) {
  return call.b.convert(is_signed(call.type()) ? Op::sign_extend : Op::zero_extend, to, x);
}

// The upper half of the product.
Element multiply_high(const Call& call) {
  Builder& b = call.b;
  const Value x = call.value(0), y = call.value(1);
  const Scalar type = b.type(x);
  if (type != Scalar::i64) {
    const Scalar wide = type == Scalar::i8 ? Scalar::i16 : type == Scalar::i16 ? Scalar::i32 : Scalar::i64;
    const Value product = b.compute(Op::mul, extended(call, x, wide), extended(call, y, wide));
    const Value places = b.constant_int(wide, bits(call.type()));
    return Element(b.convert(Op::narrow, type, b.compute(Op::shift_right_logical, product, places)));
  }
  const Value half = b.index(32), mask = b.index(0xffffffff);
  const auto low = [&](Value v) { return b.compute(Op::bit_and, v, mask); };
  const auto high = [&](Value v) { return b.compute(Op::shift_right_logical, v, half); };
  const auto times = [&](Value v, Value w) { return b.compute(Op::mul, v, w); };
  const auto plus = [&](Value v, Value w) { return b.compute(Op::add, v, w); };
  const Value first = plus(times(high(x), low(y)), high(times(low(x), low(y))));
  const Value second = plus(times(low(x), high(y)), low(first));
  Value result = plus(plus(times(high(x), high(y)), high(first)), high(second));
  if (is_signed(call.type())) {
    // Read as unsigned numbers, negative operands are 2^64 too large.
    const Value zero = b.index(0);
    result = b.compute(Op::sub, result, choose(call, b.compute(Op::lt, x, zero), y, zero));
    result = b.compute(Op::sub, result, choose(call, b.compute(Op::lt, y, zero), x, zero));
  }
  return Element(result);
}

// ---- extrema ------------------------------------------------------------------------------------------------------

Value extremum(const Call& call, bool greatest, Value x, Value y) {
  const bool is_unsigned_type = is_unsigned(call.type());
  const Op op =
      greatest ? (is_unsigned_type ? Op::gt_unsigned : Op::gt) : (is_unsigned_type ? Op::lt_unsigned : Op::lt);
  return choose(call, call.b.compute(op, x, y), x, y);
}
Element max_integer(const Call& call) { return Element(extremum(call, true, call.value(0), call.value(1))); }
Element min_integer(const Call& call) { return Element(extremum(call, false, call.value(0), call.value(1))); }

Element clamp_integer(const Call& call) {
  return Element(extremum(call, false, extremum(call, true, call.value(0), call.value(1)), call.value(2)));
}
Element clamp_bool(const Call& call) {
  return Element(call.b.compute(Op::bit_and, call.b.compute(Op::bit_or, call.value(0), call.value(1)), call.value(2)));
}
Element clamp_real(const Call& call) {
  return element_of(math::minimum(math::maximum(call.number(0), call.number(1)), call.number(2)));
}
Element clamp_complex(const Call& call) {
  return element_of(math::minimum(math::maximum(call.complex(0), call.complex(1)), call.complex(2)));
}

// ---- floats -------------------------------------------------------------------------------------------------------

Element sign_real(const Call& call) { return element_of(math::sign(call.number(0))); }
Element rem_real(const Call& call) { return element_of(math::rem(call.number(0), call.number(1))); }
Element square_real(const Call& call) { return element_of(math::square(call.number(0))); }
Element square_integer(const Call& call) { return Element(call.b.compute(Op::mul, call.value(0), call.value(0))); }
Element fused_real(const Call& call) {
  return element_of(math::multiply_add(call.number(0), call.number(1), call.number(2)));
}

Element fixed_power_real(const Call& call) {
  const Number x = call.number(0);
  return element_of(math::integer_pow<Number>(x, call.attrs.integer("y"), math::constant(1, x)));
}
Element fixed_power_complex(const Call& call) {
  const math::Complex<Number> x = call.complex(0), one{math::constant(1, x.real), math::constant(0, x.real)};
  return element_of(math::integer_pow<math::Complex<Number>>(x, call.attrs.integer("y"), one));
}

// The exponent may be an integer.
Element converted_exponent(const Call& call) { return convert_element(call.b, call.types[1], call.type(), call.in[1]); }
Element power_real(const Call& call) {
  return element_of(math::pow(call.number(0), Number{&call.b, converted_exponent(call).parts[0]}));
}
Element power_complex(const Call& call) {
  const Element y = converted_exponent(call);
  return element_of(math::pow(call.complex(0), math::Complex<Number>{{&call.b, y.parts[0]}, {&call.b, y.parts[1]}}));
}

// One step in the order of the stored codes.
Element nextafter_real(const Call& call) {
  Builder& b = call.b;
  const DType dtype = call.type();
  const Scalar stored = stored_type(dtype), integer = integer_of(stored);
  const auto number = [&](int64_t value) { return b.constant_int(integer, value); };
  const Value from = b.convert(Op::bitcast, integer, stored_value(b, dtype, call.in[0]));
  const Value to = b.convert(Op::bitcast, integer, stored_value(b, dtype, call.in[1]));
  const int mantissa = dtype_row(dtype).mantissa_bits, exponent = dtype_row(dtype).exponent_bits;
  const int64_t sign = INT64_MIN >> (64 - bit_width(integer));
  const int64_t infinite = ((int64_t{1} << exponent) - 1) << mantissa;
  const Value from_size = b.compute(Op::bit_and, from, number(~sign)),
              to_size = b.compute(Op::bit_and, to, number(~sign));
  const Value signs_differ = b.compute(Op::lt, b.compute(Op::bit_xor, from, to), number(0));
  const Value inward = b.compute(Op::bit_or, b.compute(Op::gt, from_size, to_size), signs_differ);
  Value next = b.compute(Op::add, from, choose(call, inward, number(-1), number(1)));
  const Value least = b.compute(Op::bit_or, b.compute(Op::bit_and, to, number(sign)), number(1));
  const Value from_zero = b.compute(Op::eq, from_size, number(0));
  next = choose(call, from_zero, least, next);
  const Value both_zero = b.compute(Op::bit_and, from_zero, b.compute(Op::eq, to_size, number(0)));
  next = choose(call, b.compute(Op::bit_or, b.compute(Op::eq, from, to), both_zero), to, next);
  const Value is_nan = b.compute(Op::bit_or, b.compute(Op::gt, from_size, number(infinite)),
                                 b.compute(Op::gt, to_size, number(infinite)));
  next = choose(call, is_nan, number(infinite | int64_t{1} << (mantissa - 1)), next);
  return element_of_stored(b, dtype, b.convert(Op::bitcast, stored, next));
}

// ---- complex numbers ----------------------------------------------------------------------------------------------

Element add_complex(const Call& call) { return element_of(call.complex(0) + call.complex(1)); }
Element sub_complex(const Call& call) { return element_of(call.complex(0) - call.complex(1)); }
Element mul_complex(const Call& call) { return element_of(call.complex(0) * call.complex(1)); }
// Division by a constant multiplies by its reciprocal, as XLA does: a product takes a fifteenth of the time.
Element divide_real(const Call& call) {
  const uint64_t* known = call.b.constant_of(call.value(1));
  const bool is_single = call.type() == DType::float32;
  if (known && (is_single || call.type() == DType::float64)) {
    const double by = is_single ? std::bit_cast<float>(static_cast<uint32_t>(*known)) : std::bit_cast<double>(*known);
    const double reciprocal = is_single ? 1.0f / static_cast<float>(by) : 1.0 / by;
    const bool regular = is_single
                             ? std::isnormal(static_cast<float>(by)) && std::isnormal(static_cast<float>(reciprocal))
                             : std::isnormal(by) && std::isnormal(reciprocal);
    if (regular)
      return Element(call.b.compute(Op::mul, call.value(0), call.b.constant(call.b.type(call.value(0)), reciprocal)));
  }
  return Element(call.b.compute(Op::div, call.value(0), call.value(1)));
}

Element div_complex(const Call& call) { return element_of(call.complex(0) / call.complex(1)); }
Element neg_complex(const Call& call) { return element_of(-call.complex(0)); }
Element abs_complex(const Call& call) { return element_of(math::abs(call.complex(0))); }
Element sign_complex(const Call& call) { return element_of(math::sign(call.complex(0))); }
Element square_complex(const Call& call) { return element_of(math::square(call.complex(0))); }
Element max_complex(const Call& call) { return element_of(math::maximum(call.complex(0), call.complex(1))); }
Element min_complex(const Call& call) { return element_of(math::minimum(call.complex(0), call.complex(1))); }

}  // namespace

ElementwiseRows arithmetic_rows() {
  constexpr Writer add = write_binary<Op::add>, sub = write_binary<Op::sub>, mul = write_binary<Op::mul>;
  constexpr Writer either = write_binary<Op::bit_or>, both = write_binary<Op::bit_and>;
  // name, boolean, integer, real, complex, key
  return {
      {"neg", nullptr, negate_integer, negate_real, neg_complex, nullptr},
      {"sign", nullptr, sign_integer, sign_real, sign_complex, nullptr},
      {"abs", nullptr, absolute_integer, absolute_real, abs_complex, nullptr},
      {"floor", nullptr, nullptr, floor_real, nullptr, nullptr},
      {"ceil", nullptr, nullptr, ceil_real, nullptr, nullptr},
      {"round", nullptr, nullptr, round_real, nullptr, nullptr},
      {"add", either, add, add, add_complex, nullptr},
      {"add_any", either, add, add, add_complex, nullptr},
      {"sub", nullptr, sub, sub, sub_complex, nullptr},
      {"mul", both, mul, mul, mul_complex, nullptr},
      {"mulhi", nullptr, multiply_high, nullptr, nullptr, nullptr},
      {"div", nullptr, divide_integer, divide_real, div_complex, nullptr},
      {"rem", nullptr, remainder_integer, rem_real, nullptr, nullptr},
      {"pow", nullptr, power_integer, power_real, power_complex, nullptr},
      {"integer_pow", nullptr, fixed_power_integer, fixed_power_real, fixed_power_complex, nullptr},
      {"square", nullptr, square_integer, square_real, square_complex, nullptr},
      {"max", either, max_integer, write_binary<Op::maximum>, max_complex, nullptr},
      {"min", both, min_integer, write_binary<Op::minimum>, min_complex, nullptr},
      {"clamp", clamp_bool, clamp_integer, clamp_real, clamp_complex, nullptr},
      {"nextafter", nullptr, nullptr, nextafter_real, nullptr, nullptr},
      {"multiply_add", nullptr, nullptr, fused_real, nullptr, nullptr},
  };
}

}  // namespace capibara::cpu
