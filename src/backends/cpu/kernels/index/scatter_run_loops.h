// The loops of scatters over elements of windows that are one run of neighbours, or one element.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/index/index_windows.h"
#include "backends/cpu/kernels/index/scatter_loops.h"

namespace capibara::cpu::scatters {

// How an array's elements are stored, and what arithmetic on them is done in.
template <class E>
using ComputeOf = std::conditional_t<std::is_same_v<E, BFloat16> || std::is_same_v<E, Half>, float, E>;

template <Combine O, class E>
inline E combined_stored(const E& a, const E& b) {
  if constexpr (O == Combine::replace)
    return b;
  else
    return static_cast<E>(combined<O>(static_cast<ComputeOf<E>>(a), static_cast<ComputeOf<E>>(b)));
}

// On elements as they are stored. Places count elements; `which` names the updates that go to them.
struct RunLoops {
  int64_t size;  // bytes of an element
  // into[places[i]] op= from[i * step], but for places that are nowhere.
  void (*elements)(void* into, const uint32_t* places, const void* from, int64_t step, int64_t count);
  // into[places[i]] op= from[which[i] * step].
  void (*chosen)(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step,
                 int64_t count);
  // The same for `run` neighbours at each place; `some`: the updates are not all of them.
  void (*rows)(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step, int64_t count,
               bool some, int64_t run);
  // What changes nothing when it is combined, and into[i] op= from[i]; null where updates are never divided in parts.
  void (*clear)(void* into, int64_t count);
  void (*join)(void* into, const void* from, int64_t count);
};

template <Combine O, class E>
void combine_elements(void* into, const uint32_t* places, const void* from, int64_t step, int64_t count) {
  E* target = static_cast<E*>(into);
  const E* source = static_cast<const E*>(from);
  for (int64_t i = 0; i < count; ++i) {
    if (places[i] != WindowPlan::nowhere) target[places[i]] = combined_stored<O>(target[places[i]], source[i * step]);
  }
}

template <Combine O, class E>
void combine_chosen(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step,
                    int64_t count) {
  E* target = static_cast<E*>(into);
  const E* source = static_cast<const E*>(from);
  for (int64_t i = 0; i < count; ++i)
    target[places[i]] = combined_stored<O>(target[places[i]], source[which[i] * step]);
}

template <class E>
inline constexpr bool is_number = std::is_same_v<E, float> || std::is_same_v<E, double> ||
                                  (std::is_integral_v<E> && !std::is_same_v<E, bool>);

// Runs of one place one after the other: each element stays at hand until the last of them.
template <Combine O, class E>
inline void combine_group(E* __restrict to, const E* __restrict from, int64_t step, const uint32_t* which,
                          int64_t count, int64_t run) {
  if constexpr (O == Combine::replace) {
    copy_run(to, 1, from + which[count - 1] * step, 1, run);
    return;
  }
  int64_t k = 0;
  if constexpr (O == Combine::add && is_number<E>) {
    typedef E Vector __attribute__((vector_size(16)));
    constexpr int64_t width = 16 / sizeof(E);
    auto read = [](const E* at) {
      Vector value;
      std::memcpy(&value, at, sizeof value);
      return value;
    };
    for (; k + 4 * width <= run; k += 4 * width) {
      Vector a = read(to + k), b = read(to + k + width), c = read(to + k + 2 * width), d = read(to + k + 3 * width);
      for (int64_t i = 0; i < count; ++i) {
        const E* at = from + which[i] * step + k;
        a += read(at), b += read(at + width), c += read(at + 2 * width), d += read(at + 3 * width);
      }
      std::memcpy(to + k, &a, 16), std::memcpy(to + k + width, &b, 16);
      std::memcpy(to + k + 2 * width, &c, 16), std::memcpy(to + k + 3 * width, &d, 16);
    }
    for (; k + width <= run; k += width) {
      Vector a = read(to + k);
      for (int64_t i = 0; i < count; ++i) a += read(from + which[i] * step + k);
      std::memcpy(to + k, &a, 16);
    }
  }
  if (k == run) return;
  for (int64_t i = 0; i < count; ++i) {
    const E* __restrict at = from + which[i] * step;
    for (int64_t j = k; j < run; ++j) to[j] = combined_stored<O>(to[j], at[j]);
  }
}

template <Combine O, class E>
void combine_rows(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step,
                  int64_t count, bool some, int64_t run) {
  constexpr int64_t ahead = 12;
  E* target = static_cast<E*>(into);
  const E* source = static_cast<const E*>(from);
  for (int64_t i = 0; i < count;) {
    int64_t next = i + 1;
    while (next < count && places[next] == places[i]) ++next;
    if (next + ahead < count) {
      __builtin_prefetch(target + places[next + ahead], 1);
      if (some) __builtin_prefetch(source + which[next + ahead] * step);
    }
    combine_group<O>(target + places[i], source, step, which + i, next - i, run);
    i = next;
  }
}

template <Combine O, class E>
void clear_part(void* into, int64_t count) {
  using Limits = std::numeric_limits<E>;
  E neutral{};
  if constexpr (O == Combine::add)
    neutral = std::is_floating_point_v<E> ? static_cast<E>(-0.0) : E{};
  else if constexpr (O == Combine::min)
    neutral = Limits::has_infinity ? Limits::infinity() : Limits::max();
  else
    neutral = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  std::fill_n(static_cast<E*>(into), count, neutral);
}

template <Combine O, class E>
RunLoops run_loops() {
  RunLoops loops{sizeof(E), combine_elements<O, E>, combine_chosen<O, E>, combine_rows<O, E>, nullptr, nullptr};
  if constexpr ((O == Combine::add || O == Combine::min || O == Combine::max) && is_number<E>) {
    loops.clear = clear_part<O, E>;
    loops.join = [](void* into, const void* from, int64_t count) { combine_run<O, E>(into, 1, from, 1, count); };
  }
  return loops;
}

}  // namespace capibara::cpu::scatters
