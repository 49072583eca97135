// Floating types of 4 to 16 bits and integers of 1 to 4 bits as C++ values: stored bits plus exact conversions.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace capibara {

// How a format uses the codes that IEEE 754 reserves for infinities, NaNs and the negative zero.
enum class Specials : std::uint8_t {
  ieee,           // infinities and NaNs at the greatest exponent
  one_nan,        // "fn": only the all-ones code is NaN; overflow gives NaN
  unsigned_zero,  // "fnuz": the code of -0 is the only NaN; overflow gives NaN
  finite,         // no NaN, no infinity; overflow saturates, NaN becomes -0
  powers_of_two,  // "e8m0fnu": an exponent alone; no sign, no zero; all ones is NaN
};

struct SmallFormat {
  int bits;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr std::uint32_t sign_bit() const { return specials == Specials::powers_of_two ? 0u : 1u << (bits - 1); }
  constexpr std::uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  // The greatest code of a finite magnitude.
  constexpr std::uint32_t max_code() const {
    const std::uint32_t ones = (1u << (exponent_bits + mantissa_bits)) - 1;
    switch (specials) {
      case Specials::ieee:
        return infinity() - 1;
      case Specials::one_nan:
      case Specials::powers_of_two:
        return ones - 1;
      default:
        return ones;
    }
  }
  // A quiet NaN; `sign` is zero or sign_bit().
  constexpr std::uint32_t nan(std::uint32_t sign) const {
    switch (specials) {
      case Specials::ieee:
        return sign | infinity() | (1u << (mantissa_bits - 1));
      case Specials::one_nan:
      case Specials::powers_of_two:
        return sign | (max_code() + 1);
      default:
        return sign_bit();
    }
  }
  constexpr std::uint32_t overflow(std::uint32_t sign) const {
    if (specials == Specials::ieee) return sign | infinity();
    return specials == Specials::finite ? sign | max_code() : nan(sign);
  }
};

// The code nearest to `value`, ties to the even code: one rounding from the exact value.
constexpr std::uint32_t encode_small_float(const SmallFormat& format, double value) {
  const std::uint64_t word = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = (word >> 63) ? format.sign_bit() : 0u;
  const int raw_exponent = static_cast<int>((word >> 52) & 0x7ff);
  const std::uint64_t fraction = word & ((std::uint64_t{1} << 52) - 1);
  if (raw_exponent == 0x7ff) return fraction ? format.nan(sign) : format.overflow(sign);

  const bool powers = format.specials == Specials::powers_of_two;
  if (powers && ((word >> 63) != 0 || value == 0)) return format.nan(0);

  // Doubles below their own normal range are below half of every format's least value.
  const std::uint64_t significand = raw_exponent ? fraction | (std::uint64_t{1} << 52) : 0;
  const int field = raw_exponent - 1023 + format.bias;
  const int least_normal = powers ? 0 : 1;
  int shift = 52 - format.mantissa_bits;
  std::uint64_t kept = fraction;
  std::uint32_t code = 0;
  if (field >= least_normal) {
    if (field > (1 << format.exponent_bits)) return format.overflow(sign);
    code = static_cast<std::uint32_t>(field) << format.mantissa_bits;
  } else {
    // This format has no zero: underflow gives its least value, or NaN for values below float32's range.
    if (powers) return field >= format.bias - 149 ? 0 : format.nan(0);
    shift += 1 - field;
    kept = significand;
  }
  if (shift < 64) {
    code += static_cast<std::uint32_t>(kept >> shift);
    const std::uint64_t rest = kept & ((std::uint64_t{1} << shift) - 1);
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    // Powers of two round halfway values up: their significand, an implied 1, is odd.
    if (rest > half || (rest == half && (powers || (code & 1)))) ++code;
  }
  if (code > format.max_code()) return format.overflow(sign);
  if (code == 0 && format.specials == Specials::unsigned_zero) return 0;
  return sign | code;
}

constexpr double decode_small_float(const SmallFormat& format, std::uint32_t code) {
  constexpr double nan = std::bit_cast<double>(std::uint64_t{0x7ff8} << 48);
  constexpr double infinity = std::bit_cast<double>(std::uint64_t{0x7ff0} << 48);
  const auto power_of_two = [](int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  };
  const std::uint32_t magnitude = code & ((1u << (format.exponent_bits + format.mantissa_bits)) - 1);
  const bool negative = (code & format.sign_bit()) != 0;
  if (format.specials == Specials::powers_of_two) {
    return magnitude > format.max_code() ? nan : power_of_two(static_cast<int>(magnitude) - format.bias);
  }
  if (format.specials == Specials::unsigned_zero && negative && magnitude == 0) return nan;
  if (magnitude > format.max_code()) {
    if (format.specials != Specials::ieee || magnitude != format.infinity()) return nan;
    return negative ? -infinity : infinity;
  }
  const int field = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  double value = mantissa;
  if (field > 0) value += static_cast<double>(1u << format.mantissa_bits);
  value *= power_of_two((field > 0 ? field : 1) - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

template <SmallFormat F>
struct SmallFloat {
  using Bits = std::conditional_t<(F.bits > 8), std::uint16_t, std::uint8_t>;
  static constexpr SmallFormat format = F;

  Bits bits = 0;

  SmallFloat() = default;
  explicit constexpr SmallFloat(double value) : bits(static_cast<Bits>(encode_small_float(F, value))) {}
  explicit constexpr SmallFloat(float value) : SmallFloat(static_cast<double>(value)) {}

  static constexpr SmallFloat from_bits(Bits code) {
    SmallFloat result;
    result.bits = code;
    return result;
  }

  explicit constexpr operator float() const {
    if constexpr (F.bits <= 8) {
      return decoded[bits & ((1u << F.bits) - 1)];
    } else {
      return static_cast<float>(decode_small_float(F, bits));
    }
  }
  explicit constexpr operator double() const { return static_cast<float>(*this); }

 private:
  static constexpr auto make_decoded() {
    std::array<float, (F.bits <= 8 ? 1 << F.bits : 1)> values{};
    for (std::uint32_t code = 0; code < values.size(); ++code) {
      values[code] = static_cast<float>(decode_small_float(F, code));
    }
    return values;
  }
  static constexpr std::array<float, (F.bits <= 8 ? 1 << F.bits : 1)> decoded = make_decoded();
};

// The upper half of a float32. A double is first rounded to float32, as XLA and ml_dtypes do.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  explicit constexpr BFloat16(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<std::uint16_t>((word >> 16 & 0x8000u) | 0x7fc0u);
    } else {
      bits = static_cast<std::uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
    }
  }
  explicit constexpr BFloat16(double value) : BFloat16(static_cast<float>(value)) {}

  static constexpr BFloat16 from_bits(std::uint16_t code) {
    BFloat16 result;
    result.bits = code;
    return result;
  }
  explicit constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  explicit constexpr operator double() const { return static_cast<float>(*this); }
};

using Float4E2M1FN = SmallFloat<SmallFormat{4, 2, 1, 1, Specials::finite}>;
using Float6E2M3FN = SmallFloat<SmallFormat{6, 2, 3, 1, Specials::finite}>;
using Float6E3M2FN = SmallFloat<SmallFormat{6, 3, 2, 3, Specials::finite}>;
using Float8E3M4 = SmallFloat<SmallFormat{8, 3, 4, 3, Specials::ieee}>;
using Float8E4M3 = SmallFloat<SmallFormat{8, 4, 3, 7, Specials::ieee}>;
using Float8E4M3B11FNUZ = SmallFloat<SmallFormat{8, 4, 3, 11, Specials::unsigned_zero}>;
using Float8E4M3FN = SmallFloat<SmallFormat{8, 4, 3, 7, Specials::one_nan}>;
using Float8E4M3FNUZ = SmallFloat<SmallFormat{8, 4, 3, 8, Specials::unsigned_zero}>;
using Float8E5M2 = SmallFloat<SmallFormat{8, 5, 2, 15, Specials::ieee}>;
using Float8E5M2FNUZ = SmallFloat<SmallFormat{8, 5, 2, 16, Specials::unsigned_zero}>;
using Float8E8M0FNU = SmallFloat<SmallFormat{8, 8, 0, 127, Specials::powers_of_two}>;
using Half = SmallFloat<SmallFormat{16, 5, 10, 15, Specials::ieee}>;

// An integer narrower than its byte. Values wrap to `width` bits when stored; a signed value is kept
// sign-extended, and reading does not trust the byte's upper bits.
template <int width, bool is_signed>
struct SmallInt {
  using Byte = std::conditional_t<is_signed, std::int8_t, std::uint8_t>;

  Byte byte = 0;

  SmallInt() = default;
  explicit constexpr SmallInt(std::int64_t value) : byte(wrap(static_cast<std::uint64_t>(value))) {}
  explicit constexpr operator std::int64_t() const { return wrap(static_cast<std::uint8_t>(byte)); }

  static constexpr std::int64_t min() { return is_signed ? -(1 << (width - 1)) : 0; }
  static constexpr std::int64_t max() { return (1 << (width - (is_signed ? 1 : 0))) - 1; }

 private:
  static constexpr Byte wrap(std::uint64_t value) {
    const int low = static_cast<int>(value & ((1u << width) - 1));
    return static_cast<Byte>(is_signed && low > max() ? low - (1 << width) : low);
  }
};

using Int1 = SmallInt<1, true>;
using Int2 = SmallInt<2, true>;
using Int4 = SmallInt<4, true>;
using UInt1 = SmallInt<1, false>;
using UInt2 = SmallInt<2, false>;
using UInt4 = SmallInt<4, false>;

}  // namespace capibara
