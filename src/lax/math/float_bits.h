// nextafter and reduce_precision, on the bits of any IEEE-like float (float16, bfloat16, float32, float64).
//
// Exact: equal to jax 0.10.2 bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace capibara::math {

// Widths of the exponent and mantissa fields; the sign is above them.
struct FloatLayout {
  int exponent, mantissa;
};
inline constexpr FloatLayout float16_layout{5, 10};
inline constexpr FloatLayout bfloat16_layout{8, 7};
inline constexpr FloatLayout float32_layout{8, 23};
inline constexpr FloatLayout float64_layout{11, 52};

namespace detail {

template <class Bits>
constexpr Bits exponent_mask(FloatLayout layout) {
  return static_cast<Bits>(((Bits(1) << layout.exponent) - 1) << layout.mantissa);
}
template <class Bits>
constexpr Bits sign_mask(FloatLayout layout) {
  return static_cast<Bits>(Bits(1) << (layout.exponent + layout.mantissa));
}
template <class Bits>
constexpr bool bits_are_nan(Bits x, FloatLayout layout) {
  return static_cast<Bits>(x & ~sign_mask<Bits>(layout)) > exponent_mask<Bits>(layout);
}

}  // namespace detail

// The next number after `from` in the direction of `to`; `to` itself if they are equal (so nextafter(0, -0) is -0).
template <class Bits>
constexpr Bits next_after_bits(Bits from, Bits to, FloatLayout layout) {
  Bits sign = detail::sign_mask<Bits>(layout);
  if (detail::bits_are_nan(from, layout) || detail::bits_are_nan(to, layout)) {
    return static_cast<Bits>(detail::exponent_mask<Bits>(layout) | (Bits(1) << (layout.mantissa - 1)));
  }
  Bits from_size = from & static_cast<Bits>(~sign), to_size = to & static_cast<Bits>(~sign);
  if (from == to || (from_size == 0 && to_size == 0)) return to;
  if (from_size == 0) return static_cast<Bits>((to & sign) | 1);
  bool towards_zero = from_size > to_size || (from & sign) != (to & sign);
  return static_cast<Bits>(towards_zero ? from - 1 : from + 1);
}

// Rounds to a float of the given widths (to nearest, ties to even) and back; values that are denormal in the narrow
// type become zero. NaN stays, even with no mantissa left.
template <class Bits>
constexpr Bits reduce_precision_bits(Bits x, FloatLayout layout, int exponent_bits, int mantissa_bits) {
  Bits exponent_mask = detail::exponent_mask<Bits>(layout), sign_mask = detail::sign_mask<Bits>(layout);
  if (detail::bits_are_nan(x, layout)) return x;
  if (mantissa_bits < layout.mantissa) {
    int dropped = layout.mantissa - mantissa_bits;
    Bits last = static_cast<Bits>(Bits(1) << dropped);
    Bits bias = static_cast<Bits>((last >> 1) - 1 + ((x & last) >> dropped));
    x = static_cast<Bits>((x + bias) & ~(last - 1));
  }
  if (exponent_bits < layout.exponent) {
    Bits bias = static_cast<Bits>((Bits(1) << (layout.exponent - 1)) - 1);
    Bits narrow_bias = static_cast<Bits>((Bits(1) << (exponent_bits - 1)) - 1);
    Bits exponent = static_cast<Bits>((x & exponent_mask) >> layout.mantissa);
    if (exponent > bias + narrow_bias) return static_cast<Bits>((x & sign_mask) | exponent_mask);
    if (exponent <= bias - narrow_bias) return static_cast<Bits>(x & sign_mask);
  }
  return x;
}

namespace detail {
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <class T>
inline constexpr FloatLayout layout_of = sizeof(T) == 8 ? float64_layout : float32_layout;
}  // namespace detail

template <class T>
T nextafter(T from, T to) {
  using Bits = detail::BitsOf<T>;
  return std::bit_cast<T>(next_after_bits(std::bit_cast<Bits>(from), std::bit_cast<Bits>(to), detail::layout_of<T>));
}

template <class T>
T reduce_precision(T x, int exponent_bits, int mantissa_bits) {
  using Bits = detail::BitsOf<T>;
  return std::bit_cast<T>(
      reduce_precision_bits(std::bit_cast<Bits>(x), detail::layout_of<T>, exponent_bits, mantissa_bits));
}

}  // namespace capibara::math
