// Vectors of lanes as compiler extensions, for loops that are compiled for every level of a processor.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu::vector_loop {

template <class R, int Lanes>
struct Lane {
  typedef R Vector __attribute__((vector_size(Lanes * sizeof(R))));
};
template <class R, int Lanes>
using Vector = typename Lane<R, Lanes>::Vector;

// Widens bytes to words. (By reference: returning a vector depends on the processor's ABI.)
template <int Lanes, class T>
inline __attribute__((always_inline)) void widen_bytes(const T* from, Vector<std::int32_t, Lanes>& words) {
  static_assert(sizeof(T) == 1);
#if defined(__aarch64__)
  static_assert(Lanes == 4);
  std::int32_t four;  // g++ has no 4-byte vector register, and would widen them one by one
  __builtin_memcpy(&four, from, 4);
  if constexpr (std::is_signed_v<T>)
    words = reinterpret_cast<Vector<std::int32_t, 4>>(
        vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
  else
    words = reinterpret_cast<Vector<std::int32_t, 4>>(
        vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_s32(vdup_n_s32(four))))));
#else
#if defined(__x86_64__) && !defined(__clang__)
  constexpr bool by_hand = Lanes >= 8;
#else
  constexpr bool by_hand = false;
#endif
  if constexpr (by_hand) {  // g++ 12 widens bytes to words in several steps and pieces, which is three times slower
    if constexpr (std::is_signed_v<T>)
      asm("vpmovsxbd %1, %0" : "=v"(words) : "m"(*reinterpret_cast<const char(*)[Lanes]>(from)));
    else
      asm("vpmovzxbd %1, %0" : "=v"(words) : "m"(*reinterpret_cast<const char(*)[Lanes]>(from)));
  } else {
    // Through 16 bits: otherwise the elements are converted one by one.
    using Half = Vector<std::conditional_t<std::is_signed_v<T>, std::int16_t, std::uint16_t>, Lanes>;
    Vector<T, Lanes> bytes;
    __builtin_memcpy(&bytes, from, sizeof(bytes));
    words = __builtin_convertvector(__builtin_convertvector(bytes, Half), Vector<std::int32_t, Lanes>);
  }
#endif
}

}  // namespace capibara::cpu::vector_loop
