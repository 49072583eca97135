// Conversions in loop form: dtypes, bits, precision, complex parts; copies.
#include "backends/cpu/elements/elementwise.h"

namespace capibara::cpu {

namespace {

Element same(const Call& call) { return call.in[0]; }

Element convert(const Call& call) { return convert_element(call.b, call.type(), call.out, call.in[0]); }

// The bits of an element as one integer, upper bits zero.
Value word_of(const Call& call) {
  Builder& b = call.b;
  const DType dtype = call.type();
  if (is_complex(dtype)) {
    const auto part = [&](int i) {
      return b.convert(Op::zero_extend, Scalar::i64, b.convert(Op::bitcast, Scalar::i32, call.in[0].parts[i]));
    };
    return b.compute(Op::bit_or, part(0), b.compute(Op::shift_left, part(1), b.index(32)));
  }
  if (is_integer(dtype)) {
    if (!is_sub_byte(dtype)) return call.value(0);
    return b.compute(Op::bit_and, call.value(0), b.constant_int(Scalar::i8, (1 << bits(dtype)) - 1));
  }
  return b.convert(Op::bitcast, integer_of(stored_type(dtype)), stored_value(b, dtype, call.in[0]));
}

Element bitcast(const Call& call) {
  if (call.type() == call.out) return call.in[0];
  Builder& b = call.b;
  const Value word = word_of(call);
  if (is_complex(call.out)) {
    const auto part = [&](Value half) {
      return b.convert(Op::bitcast, Scalar::f32, b.convert(Op::narrow, Scalar::i32, half));
    };
    return Element(part(word), part(b.compute(Op::shift_right_logical, word, b.index(32))));
  }
  if (is_integer(call.out)) return Element(word);
  return element_of_stored(b, call.out, b.convert(Op::bitcast, stored_type(call.out), word));
}

// Rounds the mantissa to nearest even, then maps exponents out of range to infinity or zero; NaN is kept.
Element reduce_precision(const Call& call) {
  Builder& b = call.b;
  const Number x = call.number(0);
  const Scalar type = b.type(x.value), integer = integer_of(type);
  const int mantissa = type == Scalar::f64 ? 52 : 23, bias = type == Scalar::f64 ? 1023 : 127;
  const auto number = [&](int64_t value) { return b.constant_int(integer, value); };
  const auto select = [&](Value condition, Value yes, Value no) { return b.compute(Op::select, condition, yes, no); };
  const int64_t exponent_bits = std::min<int64_t>(call.attrs.integer("exponent_bits"), 16);
  const int64_t mantissa_bits = std::min<int64_t>(call.attrs.integer("mantissa_bits"), 64);
  const Value original = b.convert(Op::bitcast, integer, x.value);
  Value word = original;
  if (mantissa_bits < mantissa) {
    const int64_t dropped = mantissa - mantissa_bits;
    const Value last = b.compute(Op::bit_and, b.compute(Op::shift_right_logical, word, number(dropped)), number(1));
    word = b.compute(Op::add, word, b.compute(Op::add, number((int64_t{1} << (dropped - 1)) - 1), last));
    word = b.compute(Op::bit_and, word, number(~((int64_t{1} << dropped) - 1)));
  }
  if (exponent_bits < dtype_row(call.type()).exponent_bits) {
    const Value magnitude = b.compute(Op::bit_and, word, number(~(INT64_MIN >> (64 - 8 * byte_size(type)))));
    const Value sign = b.compute(Op::bit_xor, word, magnitude);
    const Value exponent = b.compute(Op::shift_right_logical, magnitude, number(mantissa));
    const int64_t reduced_bias = (int64_t{1} << (exponent_bits - 1)) - 1;
    const Value infinity = b.compute(Op::bit_or, sign, number(static_cast<int64_t>(2 * bias + 1) << mantissa));
    const Value in_range = select(b.compute(Op::le, exponent, number(bias - reduced_bias)), sign, word);
    word = select(b.compute(Op::gt, exponent, number(bias + reduced_bias)), infinity, in_range);
  }
  word = select(b.compute(Op::ne, x.value, x.value), original, word);
  return Element(b.convert(Op::bitcast, type, word));
}

Element real_part(const Call& call) { return Element(call.in[0].parts[0]); }
Element imaginary_part(const Call& call) { return Element(call.in[0].parts[1]); }
Element make_complex(const Call& call) { return Element(call.value(0), call.value(1)); }
Element conjugate_real(const Call& call) {
  return Element(call.value(0), call.b.constant(call.b.type(call.value(0)), 0));
}
Element conjugate(const Call& call) { return element_of(math::conj(call.complex(0))); }

}  // namespace

ElementwiseRows conversion_rows() {
  return {
      {"convert_element_type", convert, convert, convert, convert, same},
      {"bitcast_convert_type", same, bitcast, bitcast, bitcast, same},
      {"reduce_precision", nullptr, nullptr, reduce_precision, nullptr, nullptr},
      {"real", nullptr, nullptr, nullptr, real_part, nullptr},
      {"imag", nullptr, nullptr, nullptr, imaginary_part, nullptr},
      {"complex", nullptr, nullptr, make_complex, nullptr, nullptr},
      {"conj", nullptr, nullptr, conjugate_real, conjugate, nullptr},
      {"copy", same, same, same, same, same},
      {"stop_gradient", same, same, same, same, same},
      {"name", same, same, same, same, same},
      {"random_clone", nullptr, nullptr, nullptr, nullptr, same},
  };
}

}  // namespace capibara::cpu
