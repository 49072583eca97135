// Vectors of a row's elements in the accumulator type: loads and stores of float32, float64, bfloat16 and float16.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "backends/cpu/kernels/streaming.h"
#include "core/array/element.h"

namespace capibara::cpu {

#define CAPIBARA_INLINE inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors are passed only to functions that are inlined

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// For bfloat16, with intrinsics or written out for each width: g++ 12 scalarises generic conversions between vectors,
// and accepts none whose types depend on a parameter.
template <int Bytes>
struct Bfloat16;
#if defined(__aarch64__)
template <>
struct Bfloat16<16> {
  static CAPIBARA_INLINE float32x4_t load(const BFloat16* from) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(&from->bits), 16));
  }
  static CAPIBARA_INLINE void store(BFloat16* to, float32x4_t value) {
    const uint32x4_t word = vreinterpretq_u32_f32(value), nan = (word & 0x80000000u) | 0x7fc00000u;
    const uint32x4_t rounded = vsraq_n_u32(word + 0x7fff, word << 15, 31);  // to even: adds the last bit that stays
    vst1_u16(&to->bits, vshrn_n_u32(vbslq_u32(vceqq_f32(value, value), rounded, nan), 16));
  }
};
#else
#define CAPIBARA_BFLOAT16(BYTES)                                                                 \
  template <>                                                                                    \
  struct Bfloat16<BYTES> {                                                                       \
    typedef float V __attribute__((vector_size(BYTES)));                                         \
    typedef std::uint32_t Words __attribute__((vector_size(BYTES)));                             \
    typedef std::uint16_t Codes __attribute__((vector_size((BYTES) / 2)));                       \
    static CAPIBARA_INLINE V load(const BFloat16* from) {                                        \
      Codes codes;                                                                               \
      std::memcpy(&codes, &from->bits, sizeof codes);                                            \
      return reinterpret_cast<V>(__builtin_convertvector(codes, Words) << 16);                   \
    }                                                                                            \
    static CAPIBARA_INLINE Codes codes(V value) {                                                \
      const Words word = reinterpret_cast<Words>(value), nan = (word >> 16 & 0x8000) | 0x7fc0;   \
      const Words rounded = (word + 0x7fff + (word >> 16 & 1)) >> 16;                            \
      const Words chosen = (word & 0x7fffffff) > 0x7f800000 ? nan : rounded;                     \
      return __builtin_convertvector(chosen, Codes);                                             \
    }                                                                                            \
    static CAPIBARA_INLINE void store(BFloat16* to, V value) {                                   \
      const Codes bits = codes(value);                                                           \
      std::memcpy(&to->bits, &bits, sizeof bits);                                                \
    }                                                                                            \
    static CAPIBARA_INLINE void stream(BFloat16* to, V value) { cpu::stream(to, codes(value)); } \
  };
CAPIBARA_BFLOAT16(16)
CAPIBARA_BFLOAT16(32)
CAPIBARA_BFLOAT16(64)
#endif

template <class T, int Bytes>
struct Lanes {
  using C = Sum<T>;
  typedef C V __attribute__((vector_size(Bytes)));
  static constexpr int count = Bytes / static_cast<int>(sizeof(C));

  static CAPIBARA_INLINE V load(const T* from) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      return Bfloat16<Bytes>::load(from);
#if defined(__aarch64__)
    } else if constexpr (std::is_same_v<T, Half>) {
      return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->bits)));
#endif
    } else {
      V value;
      std::memcpy(&value, from, sizeof value);
      return value;
    }
  }
  static CAPIBARA_INLINE void store(T* to, V value) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      Bfloat16<Bytes>::store(to, value);
#if defined(__aarch64__)
    } else if constexpr (std::is_same_v<T, Half>) {
      vst1_u16(&to->bits, vreinterpret_u16_f16(vcvt_f16_f32(value)));
#endif
    } else {
      std::memcpy(to, &value, sizeof value);
    }
  }
  // Bypasses the caches if `streamed`.
  static CAPIBARA_INLINE void store(T* to, V value, [[maybe_unused]] bool streamed) {
#if defined(__x86_64__)
    if (streamed) {
      if constexpr (std::is_same_v<T, BFloat16>)
        Bfloat16<Bytes>::stream(to, value);
      else
        stream(to, value);
      return;
    }
#endif
    store(to, value);
  }
  // May lose a NaN.
  static CAPIBARA_INLINE V greater(V a, V b) {
#if defined(__aarch64__)
    if constexpr (std::is_same_v<C, float>) return vmaxq_f32(a, b);
#endif
    return a > b ? a : b;
  }
  static CAPIBARA_INLINE C total(V value) {
    C sum = 0;
    for (int i = 0; i < count; ++i) sum += value[i];
    return sum;
  }
};

}  // namespace capibara::cpu
