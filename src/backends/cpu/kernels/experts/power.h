// Powers of e in straight code, which compilers turn into vectors, and sums of rows in lanes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace capibara::cpu {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// exp(x) of x <= 0 in straight code, which compilers turn into vectors; 2 ulp.
CAPIBARA_INLINE float power(float x) {
  constexpr float least = -87.0f, shift = 12582912.0f;  // 1.5 * 2^23: the last bits of a sum are an integer
  // By bits, since compilers make branches of conditions.
  const std::uint32_t below = 0u - static_cast<std::uint32_t>(x < least);
  const auto bits = std::bit_cast<std::uint32_t>(x), bound = std::bit_cast<std::uint32_t>(least);
  const float bounded = std::bit_cast<float>((bits & ~below) | (bound & below));
  const float shifted = bounded * 1.44269504f + shift, steps = shifted - shift;
  const float rest = (bounded - steps * 0.693359375f) + steps * 2.12194440e-4f;
  float sum = 1.9875691500e-4f;
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * (rest * rest) + rest + 1.0f;
  const float scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(sum * scale) & ~below);
}
CAPIBARA_INLINE double power(double x) { return std::exp(x); }

// In a fixed order that vectors keep.
template <class C>
CAPIBARA_INLINE C sum_of(const C* values, int64_t count) {
  C a = 0, b = 0, c = 0, d = 0;
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    a += values[i];
    b += values[i + 1];
    c += values[i + 2];
    d += values[i + 3];
  }
  for (; i < count; ++i) a += values[i];
  return (a + b) + (c + d);
}

}  // namespace capibara::cpu
