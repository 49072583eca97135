// Which elements windows over planes select, and what the elements get of the windows that selected them.
#pragma once

#include "backends/cpu/kernels/planes/vectors.h"

namespace capibara::cpu {

template <class T, int Bytes>
struct PlaneChoices : PlaneVectors<T, Bytes> {
  using Own = PlaneVectors<T, Bytes>;
  using Index = typename Own::Index;
  using V = typename Own::V;
  using Own::lanes;
  using Own::load;
  using Own::store;
  using Int = typename Own::Int;
  using M = typename Own::M;
  using UnalignedInt = typename Own::UnalignedInt;
  using Own::in_blocks;
  using Own::load_int;

  template <bool Greatest>
  CAPIBARA_PLANE_INLINE M keeps(V held, V next) {
    if constexpr (Greatest)
      return reinterpret_cast<M>(held >= next);
    else
      return reinterpret_cast<M>(held <= next);
  }
  template <bool Greatest, int N>
  CAPIBARA_PLANE_INLINE void choose_block(const T* const* taps, Index tap_count, Index at, Int* which) {
    V held[N];
    M chosen[N] = {};
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) held[v] = load(taps[0] + at + v * lanes);
    for (Index t = 1; t < tap_count; ++t) {
      const M number = M{} + static_cast<Int>(t);
      const T* x = taps[t] + at;
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) {
        const V next = load(x + v * lanes);
        const M keep = keeps<Greatest>(held[v], next);
        held[v] = keep ? held[v] : next;
        chosen[v] = keep ? chosen[v] : number;
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) *reinterpret_cast<UnalignedInt*>(which + at + v * lanes) = chosen[v];
  }
  static void choose(bool greatest, const T* const* taps, Index tap_count, Int* which, Index count) {
    if (greatest) {
      in_blocks(
          count, [&]<int N>(Index i)
                     __attribute__((always_inline)) { choose_block<true, N>(taps, tap_count, i, which); });
    } else {
      in_blocks(
          count, [&]<int N>(Index i)
                     __attribute__((always_inline)) { choose_block<false, N>(taps, tap_count, i, which); });
    }
  }

  template <int N>
  CAPIBARA_PLANE_INLINE void collect_block(const PlaneTotals<T>& windows, Index at, T* totals) {
    V total[N] = {};
    for (Index t = 0; t < windows.tap_count; ++t) {
      const M number = M{} + windows.numbers[t];
      const Index first = at - windows.shifts[t];
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) {
        const M chosen = load_int(windows.which + first + v * lanes) == number;
        const V more = total[v] + load(windows.updates + first + v * lanes);
        total[v] = chosen ? more : total[v];
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) store(totals + at + v * lanes, total[v]);
  }
  static void collect(const PlaneTotals<T>& windows, T* totals, Index count) {
    in_blocks(
        count, [&]<int N>(Index i) __attribute__((always_inline)) { collect_block<N>(windows, i, totals); });
  }
};

}  // namespace capibara::cpu
