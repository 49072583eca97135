// Windows in vectors: the choice of one element in each of several windows side by side.
#pragma once

#include "backends/cpu/kernels/window/window_lanes.h"

namespace capibara::cpu {

// Which element of a window a comparison `held ? candidate` leaves.
enum class Keeps { ge, le, gt, lt };

template <Keeps K, class X>
inline __attribute__((always_inline)) auto keeps_held(X held, X candidate) {
  if constexpr (K == Keeps::ge)
    return held >= candidate;
  else if constexpr (K == Keeps::le)
    return held <= candidate;
  else if constexpr (K == Keeps::gt)
    return held > candidate;
  else
    return held < candidate;
}

// The number of the chosen tap for `count` windows side by side, Stride elements apart. Returns how many were done.
template <Keeps K, class C, int Stride>
inline int64_t choose_in_lanes(const C* const* taps, int64_t tap_count, std::int32_t* chosen, int64_t count) {
  int64_t i = 0;
  if constexpr (has_lanes<C>) {
    using L = Lanes<C>;
    if (tap_count > 127) return 0;  // numbers of taps must fit the lanes
    for (; i + L::count + (Stride - 1) <= count; i += L::count) {
      typename L::V held = L::template load<Stride>(taps[0] + i * Stride);
      typename L::Mask which = {};
      for (int64_t e = 1; e < tap_count; ++e) {
        const typename L::V next = L::template load<Stride>(taps[e] + i * Stride);
        const auto keep = keeps_held<K>(held, next);
        held = keep ? held : next;
        which = keep ? which : typename L::Mask{} + static_cast<typename L::Integer>(e);
      }
#pragma GCC unroll 16
      for (int l = 0; l < L::count; ++l) chosen[i + l] = static_cast<std::int32_t>(which[l]);
    }
  }
  return i;
}

// The same for all of `count` windows, any number of elements apart.
template <Keeps K, class C>
void choose_windows(const C* const* taps, int64_t tap_count, int64_t stride, std::int32_t* chosen, int64_t count) {
  int64_t i = 0;
  if (stride == 1)
    i = choose_in_lanes<K, C, 1>(taps, tap_count, chosen, count);
  else if (stride == 2)
    i = choose_in_lanes<K, C, 2>(taps, tap_count, chosen, count);
  for (; i < count; ++i) {
    std::int32_t held = 0;
    for (int64_t e = 1; e < tap_count; ++e) {
      if (!keeps_held<K>(taps[held][i * stride], taps[e][i * stride])) held = static_cast<std::int32_t>(e);
    }
    chosen[i] = held;
  }
}

// For `count` neighbouring elements: the chosen one of taps[e][i] decides to which targets[e][i] update[i] is added.
template <Keeps K, Monoid M, class C>
void select_and_add(const C* const* taps, C* const* targets, int64_t tap_count, const C* update, int64_t count) {
  int64_t i = 0;
  if constexpr (has_lanes<C>) {
    using L = Lanes<C>;
    for (; tap_count <= 127 && i + L::count <= count; i += L::count) {
      typename L::V held = L::template load<1>(taps[0] + i);
      typename L::Mask which = {};
      for (int64_t e = 1; e < tap_count; ++e) {
        const typename L::V next = L::template load<1>(taps[e] + i);
        const auto keep = keeps_held<K>(held, next);
        held = keep ? held : next;
        which = keep ? which : typename L::Mask{} + static_cast<typename L::Integer>(e);
      }
      const typename L::V own = L::template load<1>(update + i);
      for (int64_t e = 0; e < tap_count; ++e) {
        const typename L::V before = L::template load<1>(targets[e] + i);
        L::store(targets[e] + i, which == typename L::Mask{} + static_cast<typename L::Integer>(e)
                                     ? L::template combine<M>(before, own)
                                     : before);
      }
    }
  }
  for (; i < count; ++i) {
    int64_t which = 0;
    for (int64_t e = 1; e < tap_count; ++e) {
      if (!keeps_held<K>(taps[which][i], taps[e][i])) which = e;
    }
    targets[which][i] = reference::combine<M>(targets[which][i], update[i]);
  }
}

}  // namespace capibara::cpu
