// exp of vectors of float32, within two units in the last place.
#pragma once

#include <cstdint>

namespace capibara::cpu {

// The element types are parameters because in templates g++ 12 takes vectors of other types for scalars.
template <int Bytes, class Real = float, class Integer = std::int32_t>
struct VectorExp {
  typedef Real V __attribute__((vector_size(Bytes)));
  typedef Integer I __attribute__((vector_size(Bytes)));

  // Overflows to infinity; below -87 the result is that of -87. NaN stays NaN.
  static inline __attribute__((always_inline)) V of(V x) {
    x = x > 89.0f ? V{} + 89.0f : x;
    x = x < lowest ? V{} + lowest : x;
    const V power = scaled(x), mantissa = reduced(x, power);
    // 2^n in two factors: n may be 128.
    const I n = reinterpret_cast<I>(power) << 9 >> 9, half = n >> 1;
    const V first = reinterpret_cast<V>((half + 127) << 23), second = reinterpret_cast<V>((n - half + 127) << 23);
    return mantissa * first * second;
  }

  // For x <= 0; below -87, and for -infinity, the result is 0.
  static inline __attribute__((always_inline)) V of_negative(V x) {
    const V power = scaled(x), mantissa = reduced(x, power);
    const V value = mantissa * reinterpret_cast<V>((reinterpret_cast<I>(power) << 23) + (127 << 23));
    return x < lowest ? V{} : value;
  }

 private:
  static constexpr float lowest = -87.0f;
  static constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits

  static inline __attribute__((always_inline)) V scaled(V x) { return x * 1.44269504f + shift; }

  // exp(x - n log 2), where n is the integer in the low bits of `power`. The polynomial's largest error is 1.1e-7.
  static inline __attribute__((always_inline)) V reduced(V x, V power) {
    const V n = power - shift, r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    const V square = r * r;  // evaluated in pairs, to shorten the dependency chain
    const V high = (r * 0.0083125038f + 0.0418903343f) * square + (r * 0.166671157f + 0.499992311f);
    return high * square + (r + 1.0f);
  }
};

}  // namespace capibara::cpu
