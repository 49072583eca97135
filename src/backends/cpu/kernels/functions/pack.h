// Numbers in the lanes of one vector: the type, its arithmetic, its conditions and its bits.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu {

// All bits of a lane are set where a condition holds.
template <class T, int Bytes>
struct PackTypes {
  using Int = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  typedef T V __attribute__((vector_size(Bytes)));
  typedef Int M __attribute__((vector_size(Bytes)));
  typedef std::int64_t Words __attribute__((vector_size(Bytes)));
};

template <class T, int Bytes>
struct PackCondition {
  typename PackTypes<T, Bytes>::M bits;
};

template <class T, int Bytes>
struct Pack {
  typename PackTypes<T, Bytes>::V v;
};

template <class T, int Bytes>
inline Pack<T, Bytes> operator+(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v + b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator-(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v - b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator*(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v * b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator/(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v / b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator-(Pack<T, Bytes> a) {
  return {-a.v};
}
template <class T, int Bytes>
inline PackCondition<T, Bytes> logical_and(PackCondition<T, Bytes> a, PackCondition<T, Bytes> b) {
  return {a.bits & b.bits};
}
template <class T, int Bytes>
inline PackCondition<T, Bytes> logical_or(PackCondition<T, Bytes> a, PackCondition<T, Bytes> b) {
  return {a.bits | b.bits};
}
template <class T, int Bytes>
inline PackCondition<T, Bytes> logical_not(PackCondition<T, Bytes> a) {
  return {~a.bits};
}

// What the lanes' bits give, and products that are rounded once.
template <class T, int Bytes>
struct PackBits {
  using P = Pack<T, Bytes>;
  using Types = PackTypes<T, Bytes>;
  using V = typename Types::V;
  using M = typename Types::M;
  using Int = typename Types::Int;
  using Condition = PackCondition<T, Bytes>;
  static constexpr int count = Bytes / static_cast<int>(sizeof(T));
  static constexpr int digits = std::numeric_limits<T>::digits - 1;
  static constexpr Int bias = std::numeric_limits<T>::max_exponent - 1, sign = std::numeric_limits<Int>::min();
  // Added, it leaves the nearest integer in the last bits: conversions between integers and numbers of 64 bits are
  // slow before AVX-512.
  static constexpr T large = static_cast<T>(Int{3} << (digits - 1));

  static M bits_of(P x) { return reinterpret_cast<M>(x.v); }
  static P of_bits(M bits) { return {reinterpret_cast<V>(bits)}; }

  static P abs(P x) { return of_bits(bits_of(x) & ~sign); }
  static P copysign(P magnitude, P from) { return of_bits((bits_of(magnitude) & ~sign) | (bits_of(from) & sign)); }
  // Rounded once. By intrinsics: of x * y - z, where z is x * y rounded, a contracted sum would be zero.
  static P multiply_add(P x, P y, P z) {
#if defined(__x86_64__)
    if constexpr (Bytes == 64 && sizeof(T) == 4)
      return {_mm512_fmadd_ps(x.v, y.v, z.v)};
    else if constexpr (Bytes == 64)
      return {_mm512_fmadd_pd(x.v, y.v, z.v)};
    else if constexpr (sizeof(T) == 4)
      return {_mm256_fmadd_ps(x.v, y.v, z.v)};
    else
      return {_mm256_fmadd_pd(x.v, y.v, z.v)};
#elif defined(__aarch64__)
    if constexpr (sizeof(T) == 4)
      return {vfmaq_f32(z.v, x.v, y.v)};
    else
      return {vfmaq_f64(z.v, x.v, y.v)};
#else
    return {x.v * y.v + z.v};
#endif
  }

  // x = mantissa(x) * 2^exponent(x) with a mantissa in [0.5, 1), for normal x > 0; anything for others.
  static P exponent(P x) {
    const T shift = static_cast<T>(Int{1} << digits);
    const P field = of_bits(((bits_of(x) & ~sign) >> digits) | bits_of(P{V{} + shift}));
    return {field.v - (shift + static_cast<T>(bias - 1))};
  }
  static P mantissa(P x) { return of_bits((bits_of(x) & ((Int{1} << digits) - 1)) | (M{} + ((bias - 1) << digits))); }
  // 2^n for an integer n of normal range, 0 for the one below; anything for others.
  static P power_of_two(P n) { return of_bits(bits_of({n.v + (large + static_cast<T>(bias))}) << digits); }

  // One bit of the representation, counted from the last; and the sign of x changed where z has that bit.
  static Condition has_bit(P z, int bit) { return {(bits_of(z) & (Int{1} << bit)) != M{}}; }
  static P negated_by_bit(P x, P z, int bit) {
    return of_bits(bits_of(x) ^ ((bits_of(z) << (8 * static_cast<int>(sizeof(T)) - 1 - bit)) & sign));
  }

  static bool any(Condition condition) {
    auto words = reinterpret_cast<typename Types::Words>(condition.bits);
    std::int64_t found = 0;
    if constexpr (Bytes == 64) {
      const auto half =
          __builtin_shufflevector(words, words, 0, 1, 2, 3) | __builtin_shufflevector(words, words, 4, 5, 6, 7);
      const auto quarter = __builtin_shufflevector(half, half, 0, 1) | __builtin_shufflevector(half, half, 2, 3);
      found = quarter[0] | quarter[1];
    } else if constexpr (Bytes == 32) {
      const auto half = __builtin_shufflevector(words, words, 0, 1) | __builtin_shufflevector(words, words, 2, 3);
      found = half[0] | half[1];
    } else {
      found = words[0] | words[1];
    }
    return found != 0;
  }
};

}  // namespace capibara::cpu
