// Decoding and encoding of floats of 4 to 8 bits by integer operations, without tables.
#include "backends/cpu/elements/small_float.h"

#include <bit>
#include <optional>

#include "core/array/element.h"

namespace capibara::cpu {

namespace {

std::optional<SmallFormat> format_of(DType dtype) {
  if (!is_floating(dtype) || bits(dtype) > 8) return std::nullopt;
  return visit_storage(dtype, []<class T>(Type<T>) -> std::optional<SmallFormat> {
    if constexpr (requires { T::format; })
      return T::format;
    else
      return std::nullopt;
  });
}

struct CodeWriter {
  Builder& b;

  Value word(std::uint32_t value) { return b.constant_int(Scalar::i32, static_cast<std::int32_t>(value)); }
  Value real(float value) { return b.constant(Scalar::f32, value); }
  Value operator()(Op op, Value x, Value y = no_value, Value z = no_value) { return b.compute(op, x, y, z); }
  Value with(Op op, Value x, std::uint32_t y) { return b.compute(op, x, word(y)); }
  Value select(Value condition, Value yes, Value no) { return b.compute(Op::select, condition, yes, no); }
};

}  // namespace

bool is_coded_float(DType dtype) { return is_floating(dtype) && bits(dtype) <= 8; }

Value decode_small_float(Builder& builder, DType dtype, Value code) {
  const SmallFormat format = *format_of(dtype);
  CodeWriter w{builder};
  const Value all = builder.convert(Op::zero_extend, Scalar::i32, code);
  const std::uint32_t ones = (1u << (format.exponent_bits + format.mantissa_bits)) - 1;
  const Value magnitude = w.with(Op::bit_and, all, ones);
  const Value nan = w.word(0x7fc00000u);
  Value word;
  if (format.specials == Specials::powers_of_two) {
    // The smallest, 2^-127, is a denormal of f32.
    word = w.with(Op::shift_left, magnitude, 23);
    word = w.select(w.with(Op::eq, magnitude, 0), w.word(0x00400000u), word);
    word = w.select(w.with(Op::gt, magnitude, format.max_code()), nan, word);
    return builder.convert(Op::bitcast, Scalar::f32, word);
  }
  // Normal numbers are shifted into place; denormals are small integers times the smallest one.
  const Value normal =
      w.with(Op::add, w.with(Op::shift_left, magnitude, static_cast<std::uint32_t>(23 - format.mantissa_bits)),
             static_cast<std::uint32_t>(127 - format.bias) << 23);
  const float least = std::bit_cast<float>(static_cast<std::uint32_t>(128 - format.bias - format.mantissa_bits) << 23);
  const Value product = w(Op::mul, builder.convert(Op::signed_to_float, Scalar::f32, magnitude), w.real(least));
  const Value denormal = builder.convert(Op::bitcast, Scalar::i32, product);
  word = w.select(w.with(Op::lt, magnitude, 1u << format.mantissa_bits), denormal, normal);
  if (format.max_code() < ones) {
    word = w.select(w.with(Op::gt, magnitude, format.max_code()), nan, word);
    if (format.specials == Specials::ieee) {
      word = w.select(w.with(Op::eq, magnitude, format.infinity()), w.word(0x7f800000u), word);
    }
  }
  const Value sign = w.with(Op::bit_and, all, format.sign_bit());
  word = w(Op::bit_or, word, w.with(Op::shift_left, sign, static_cast<std::uint32_t>(32 - format.bits)));
  if (format.specials == Specials::unsigned_zero) word = w.select(w.with(Op::eq, all, format.sign_bit()), nan, word);
  return builder.convert(Op::bitcast, Scalar::f32, word);
}

Value encode_small_float(Builder& builder, DType dtype, Value number) {
  const SmallFormat format = *format_of(dtype);
  CodeWriter w{builder};
  const Value word = builder.convert(Op::bitcast, Scalar::i32, number);
  const Value magnitude = w.with(Op::bit_and, word, 0x7fffffffu);
  const Value is_nan = w.with(Op::gt, magnitude, 0x7f800000u);
  Value code;
  if (format.specials == Specials::powers_of_two) {
    // Halfway cases round up; below 2^-127 there is only the smallest value; zero and negative numbers give NaN.
    const Value half = w.with(Op::bit_and, w.with(Op::shift_right_logical, magnitude, 22), 1);
    code = w(Op::add, w.with(Op::shift_right_logical, magnitude, 23), half);
    const Value above_half = w.with(Op::ge, magnitude, 0x00600000u);
    code = w.select(w.with(Op::lt, magnitude, 0x00800000u), w.select(above_half, w.word(1), w.word(0)), code);
    code = w.select(w.with(Op::le, word, 0), w.word(format.nan(0)), code);
    code = w.select(w.with(Op::gt, code, format.max_code()), w.word(format.nan(0)), code);
    return builder.convert(Op::narrow, Scalar::i8, code);
  }
  const auto shift = static_cast<std::uint32_t>(23 - format.mantissa_bits);
  const std::uint32_t least_normal = static_cast<std::uint32_t>(128 - format.bias) << 23;
  // Normal results: the rounded upper bits, minus the difference of the biases.
  const Value odd = w.with(Op::bit_and, w.with(Op::shift_right_logical, magnitude, shift), 1);
  Value normal = w(Op::add, w.with(Op::add, magnitude, (1u << (shift - 1)) - 1), odd);
  normal = w.with(Op::shift_right_logical, normal, shift);
  normal = w.with(Op::sub, normal, static_cast<std::uint32_t>(127 - format.bias) << format.mantissa_bits);
  // Denormal results: adding a number whose last bit is the smallest denormal makes the addition round.
  const std::uint32_t anchor = static_cast<std::uint32_t>(128 - format.bias - format.mantissa_bits + 23) << 23;
  const Value size = builder.convert(Op::bitcast, Scalar::f32, magnitude);
  const Value sum = w(Op::add, size, w.real(std::bit_cast<float>(anchor)));
  const Value denormal = w.with(Op::sub, builder.convert(Op::bitcast, Scalar::i32, sum), anchor);
  code = w.select(w.with(Op::lt, magnitude, least_normal), denormal, normal);
  code = w.select(w.with(Op::gt, code, format.max_code()), w.word(format.overflow(0)), code);
  code = w.select(is_nan, w.word(format.nan(0)), code);
  const Value sign =
      w.with(Op::bit_and, w.with(Op::shift_right_logical, word, static_cast<std::uint32_t>(32 - format.bits)),
             format.sign_bit());
  Value signed_code = w(Op::bit_or, code, sign);
  // The only zero has no sign, and the code of -0 is already NaN.
  if (format.specials == Specials::unsigned_zero)
    signed_code = w.select(w.with(Op::eq, code, 0), w.word(0), signed_code);
  // Formats without NaN use -0 for it.
  if (format.specials == Specials::finite) signed_code = w.select(is_nan, w.word(format.nan(0)), signed_code);
  return builder.convert(Op::narrow, Scalar::i8, signed_code);
}

}  // namespace capibara::cpu
