// Vectorised windows: folds of several adjacent windows.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/reference/regions.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu {

template <class C>
inline constexpr bool has_lanes = std::is_arithmetic_v<C> && !std::is_same_v<C, bool>;

template <class C>
struct Lanes {
  static constexpr int count = 16 / static_cast<int>(sizeof(C));
  using Integer = std::conditional_t<
      sizeof(C) == 1, std::int8_t,
      std::conditional_t<sizeof(C) == 2, std::int16_t, std::conditional_t<sizeof(C) == 4, std::int32_t, std::int64_t>>>;
  using Unsigned = std::make_unsigned_t<Integer>;
  typedef C V __attribute__((vector_size(16)));
  typedef C Unaligned __attribute__((vector_size(16), aligned(alignof(C)), may_alias));
  typedef Integer Mask __attribute__((vector_size(16)));
  typedef Unsigned Bits __attribute__((vector_size(16)));

  static V all(C value) { return V{} + value; }
  // Loads elements Stride (1 or 2) apart; with 2, also reads the element after the last.
  template <int Stride>
  static inline __attribute__((always_inline)) V load(const C* from) {
    const V first = *reinterpret_cast<const Unaligned*>(from);
    if constexpr (Stride == 1) {
      return first;
    } else {
      const V second = *reinterpret_cast<const Unaligned*>(from + count);
      return [&]<int... I>(std::integer_sequence<int, I...>) {
        return __builtin_shufflevector(first, second, (2 * I)...);
      }
      (std::make_integer_sequence<int, count>());
    }
  }
  // The same, but with 2 reads the element before the first.
  template <int Stride>
  static inline __attribute__((always_inline)) V load_last(const C* from) {
    if constexpr (Stride == 1) {
      return load<1>(from);
    } else {
      const V first = *reinterpret_cast<const Unaligned*>(from - 1),
              second = *reinterpret_cast<const Unaligned*>(from - 1 + count);
      return [&]<int... I>(std::integer_sequence<int, I...>) {
        return __builtin_shufflevector(first, second, (2 * I + 1)...);
      }
      (std::make_integer_sequence<int, count>());
    }
  }
  static inline __attribute__((always_inline)) void store(C* to, V value) { *reinterpret_cast<Unaligned*>(to) = value; }

  // Equivalent to reference::combine.
  template <Monoid M>
  static inline __attribute__((always_inline)) V combine(V x, V y) {
    if constexpr (M == Monoid::max || M == Monoid::min) {
      constexpr bool highest = M == Monoid::max;
      if constexpr (std::is_floating_point_v<C>) {
#if defined(__aarch64__)
        if constexpr (sizeof(C) == 4)
          return highest ? (V)vmaxq_f32((float32x4_t)x, (float32x4_t)y) : (V)vminq_f32((float32x4_t)x, (float32x4_t)y);
        else
          return highest ? (V)vmaxq_f64((float64x2_t)x, (float64x2_t)y) : (V)vminq_f64((float64x2_t)x, (float64x2_t)y);
#else
        // If equal, they are zeros of either sign or the same bits; NaN wins.
        const V equal = (V)(highest ? (Bits)x & (Bits)y : (Bits)x | (Bits)y);
        const V chosen = (highest ? x > y : x < y) ? x : y;
        const V number = x == y ? equal : chosen;
        return x != x ? x : number;
#endif
      } else {
        return (highest ? x > y : x < y) ? x : y;
      }
    } else if constexpr (std::is_floating_point_v<C>) {
      return M == Monoid::add ? x + y : M == Monoid::mul ? x * y : x;
    } else {
      const Bits a = (Bits)x, b = (Bits)y;
      return (V)(M == Monoid::add       ? a + b
                 : M == Monoid::mul     ? a * b
                 : M == Monoid::bit_and ? a & b
                 : M == Monoid::bit_or  ? a | b
                                        : a ^ b);
    }
  }
};

// out[i] = initial combined with taps[e][i * stride] for every e in order, i in [0, count).
template <Monoid M, class C, int Stride>
inline void fold_in_lanes(const C* const* taps, int64_t tap_count, C initial, int64_t stride, C* out, int64_t count) {
  int64_t i = 0;
  if constexpr (has_lanes<C> && Stride != 0) {
    using L = Lanes<C>;
    const typename L::V first = L::all(initial);
    // With a stride of 2 a vector reads one element too many: the next window covers it.
    for (; i + 4 * L::count + (Stride - 1) <= count; i += 4 * L::count) {
      typename L::V total[4] = {first, first, first, first};
      for (int64_t e = 0; e < tap_count; ++e) {
        const C* from = taps[e] + i * Stride;
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v)
          total[v] = L::template combine<M>(total[v], L::template load<Stride>(from + v * L::count * Stride));
      }
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) L::store(out + i + v * L::count, total[v]);
    }
    for (; i + L::count + (Stride - 1) <= count; i += L::count) {
      typename L::V total = first;
      for (int64_t e = 0; e < tap_count; ++e)
        total = L::template combine<M>(total, L::template load<Stride>(taps[e] + i * Stride));
      L::store(out + i, total);
    }
    if (i < count && count > L::count) {  // one more vector, overlapping and ending with the last window
      i = count - L::count;
      typename L::V total = first;
      for (int64_t e = 0; e < tap_count; ++e)
        total = L::template combine<M>(total, L::template load_last<Stride>(taps[e] + i * Stride));
      L::store(out + i, total);
      return;
    }
  }
  for (; i < count; ++i) {
    C total = initial;
    for (int64_t e = 0; e < tap_count; ++e) total = reference::combine<M>(total, taps[e][i * stride]);
    out[i] = total;
  }
}

template <Monoid M, class C>
void fold_windows(const C* const* taps, int64_t tap_count, C initial, int64_t stride, C* out, int64_t count) {
  if (stride == 1)
    fold_in_lanes<M, C, 1>(taps, tap_count, initial, 1, out, count);
  else if (stride == 2)
    fold_in_lanes<M, C, 2>(taps, tap_count, initial, 2, out, count);
  else
    fold_in_lanes<M, C, 0>(taps, tap_count, initial, stride, out, count);
}

}  // namespace capibara::cpu
