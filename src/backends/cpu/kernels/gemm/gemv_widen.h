// Floats, doubles, bfloat16 and bytes as vectors in registers, and what their halves add up to.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/gemm/gemm.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu::vector_loop {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

template <class R, int Lanes>
struct Lane {
  typedef R Vector __attribute__((vector_size(Lanes * sizeof(R))));
};
template <class R, int Lanes>
using Vector = typename Lane<R, Lanes>::Vector;

// `Lanes` elements as floats. (By reference: a vector that is returned belongs to the ABI of its processor.)
template <int Lanes, class T>
CAPIBARA_INLINE void widen(const T* from, Vector<float, Lanes>& to) {
  if constexpr (std::is_same_v<T, float>) {
    __builtin_memcpy(&to, from, sizeof(to));
  } else if constexpr (std::is_same_v<T, BrainBits>) {
    using Wide = Vector<std::uint32_t, Lanes>;
    Vector<std::uint16_t, Lanes> bits;
    __builtin_memcpy(&bits, from, sizeof(bits));
    to = reinterpret_cast<Vector<float, Lanes>>(__builtin_convertvector(bits, Wide) << 16);
  } else {
    using Narrow = Vector<std::int8_t, Lanes>;
    using Wide = Vector<std::int32_t, Lanes>;
    using Float = Vector<float, Lanes>;
    Wide words;
#if defined(__aarch64__)
    static_assert(Lanes == 4);
    std::int32_t four;  // g++ has no register of four bytes, and would widen them one by one
    __builtin_memcpy(&four, from, sizeof(Narrow));
    words = reinterpret_cast<Wide>(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
#else
#if defined(__x86_64__) && !defined(__clang__)
    constexpr bool by_hand = Lanes >= 8;
#else
    constexpr bool by_hand = false;
#endif
    if constexpr (by_hand) {  // g++ 12 takes bytes to words in steps and pieces, which is three times slower
      asm("vpmovsxbd %1, %0" : "=v"(words) : "m"(*reinterpret_cast<const char(*)[sizeof(Narrow)]>(from)));
    } else {
      using Half = Vector<std::int16_t, Lanes>;  // a step between: otherwise one by one
      Narrow bytes;
      __builtin_memcpy(&bytes, from, sizeof(bytes));
      words = __builtin_convertvector(__builtin_convertvector(bytes, Half), Wide);
    }
#endif
    to = __builtin_convertvector(words, Float);
  }
}

template <int Lanes>
CAPIBARA_INLINE void widen(const double* from, Vector<double, Lanes>& to) {
  __builtin_memcpy(&to, from, sizeof(to));
}

// What elements of a type are summed in.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
CAPIBARA_INLINE SumOf<T> widened_one(T value) {
  if constexpr (std::is_same_v<T, BrainBits>)
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
  else
    return static_cast<SumOf<T>>(value);
}

// Whether vectors of half as many lanes exist.
template <int Lanes, class R>
constexpr bool has_half = Lanes * sizeof(R) > 16;

// The lower half of a vector plus its upper half.
template <int Lanes, class R, int... I>
CAPIBARA_INLINE void add_halves(const Vector<R, Lanes>& whole, Vector<R, Lanes / 2>& sum,
                                std::integer_sequence<int, I...>) {
  sum = __builtin_shufflevector(whole, whole, I...) + __builtin_shufflevector(whole, whole, (I + Lanes / 2)...);
}

#undef CAPIBARA_INLINE

}  // namespace capibara::cpu::vector_loop
