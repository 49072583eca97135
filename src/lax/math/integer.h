// Integer arithmetic with every corner case defined, as jax on the CPU defines it.
//
// Signed arithmetic wraps. x / 0 is -1 (all ones), x rem 0 is x, the smallest / -1 is itself with remainder 0.
// A shift by the width or more (or by a negative amount) shifts out every bit.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace capibara::math {

namespace detail {
template <class T>
using Unsigned = std::make_unsigned_t<T>;
}

// Through the unsigned type, which wraps; small types are first widened to int, hence the casts back.
template <class T>
constexpr T wrapping_add(T x, T y) {
  using U = detail::Unsigned<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(x) + static_cast<U>(y)));
}
template <class T>
constexpr T wrapping_sub(T x, T y) {
  using U = detail::Unsigned<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(x) - static_cast<U>(y)));
}
template <class T>
constexpr T wrapping_mul(T x, T y) {
  // uint16 * uint16 would overflow int.
  using U = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, detail::Unsigned<T>>;
  return static_cast<T>(static_cast<U>(x) * static_cast<U>(y));
}
template <class T>
constexpr T wrapping_negate(T x) {
  return wrapping_sub(T(0), x);
}

template <class T>
constexpr T integer_div(T x, T y) {
  if (y == 0) return static_cast<T>(~T(0));
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return wrapping_negate(x);
  return static_cast<T>(x / y);
}

template <class T>
constexpr T integer_rem(T x, T y) {
  if (y == 0) return x;
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return T(0);
  return static_cast<T>(x % y);
}

// A negative power of anything but +-1 is 0; 0 to a negative power too.
template <class T>
constexpr T integer_power(T x, T y) {
  if (std::is_signed_v<T> && y < 0) {
    if (x == 1) return 1;
    if (x == static_cast<T>(-1)) return (y & 1) ? x : T(1);
    return 0;
  }
  T result = 1;
  for (auto rest = static_cast<detail::Unsigned<T>>(y); rest != 0; rest = static_cast<decltype(rest)>(rest >> 1)) {
    if (rest & 1) result = wrapping_mul(result, x);
    x = wrapping_mul(x, x);
  }
  return result;
}

template <class T>
constexpr T integer_abs(T x) {
  return x < 0 ? wrapping_negate(x) : x;
}

template <class T>
constexpr T integer_sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

// The upper half of the full product.
template <class T>
constexpr T multiply_high(T x, T y) {
  if constexpr (sizeof(T) < 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>((static_cast<Wide>(x) * static_cast<Wide>(y)) >> (8 * sizeof(T)));
  } else {
    auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);
    std::uint64_t a_low = a & 0xffffffffu, a_high = a >> 32, b_low = b & 0xffffffffu, b_high = b >> 32;
    std::uint64_t low = a_low * b_low, first = a_high * b_low + (low >> 32);
    std::uint64_t second = a_low * b_high + (first & 0xffffffffu);
    std::uint64_t high = a_high * b_high + (first >> 32) + (second >> 32);
    if (std::is_signed_v<T>) high -= (x < 0 ? b : 0) + (y < 0 ? a : 0);
    return static_cast<T>(high);
  }
}

template <class T>
constexpr bool shifts_out(T amount) {
  return static_cast<detail::Unsigned<T>>(amount) >= std::numeric_limits<detail::Unsigned<T>>::digits;
}
template <class T>
constexpr T shift_left(T x, T amount) {
  return shifts_out(amount) ? T(0) : static_cast<T>(static_cast<detail::Unsigned<T>>(x) << amount);
}
template <class T>
constexpr T shift_right_logical(T x, T amount) {
  return shifts_out(amount) ? T(0) : static_cast<T>(static_cast<detail::Unsigned<T>>(x) >> amount);
}
// Shifts in the top bit, for unsigned types as well.
template <class T>
constexpr T shift_right_arithmetic(T x, T amount) {
  using S = std::make_signed_t<T>;
  int bits = shifts_out(amount) ? std::numeric_limits<detail::Unsigned<T>>::digits - 1 : static_cast<int>(amount);
  return static_cast<T>(static_cast<S>(x) >> bits);
}

template <class T>
constexpr T population_count(T x) {
  return static_cast<T>(std::popcount(static_cast<detail::Unsigned<T>>(x)));
}
template <class T>
constexpr T count_leading_zeros(T x) {
  return static_cast<T>(std::countl_zero(static_cast<detail::Unsigned<T>>(x)));
}

}  // namespace capibara::math
