// Windows over planes: weighted sums of their elements; which elements they select, and what those receive from the
// windows that selected them.
#pragma once

#include "backends/cpu/kernels/planes/vectors.h"

namespace capibara::cpu {

template <class T, int Bytes>
struct PlaneSums : PlaneVectors<T, Bytes> {
  using Own = PlaneVectors<T, Bytes>;
  using Index = typename Own::Index;
  using V = typename Own::V;
  using Lanes = typename Own::Lanes;
  using Own::lanes;
  using Own::load;
  using Own::store;
  using M = typename Own::M;
  using Own::all;
  using Own::from_on;
  using Own::in_blocks;

  template <int N>
  CAPIBARA_PLANE_INLINE void sum_block(const T* const* taps, const T* weights, Index tap_count, Index at, T* out) {
    V sum[N] = {};
    for (Index t = 0; t < tap_count; ++t) {
      const V weight = all(weights[t]);
      const T* x = taps[t] + at;
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) sum[v] += weight * load(x + v * lanes);
    }
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) store(out + at + v * lanes, sum[v]);
  }
  static void sum(const T* const* taps, const T* weights, Index tap_count, T* out, Index count) {
    in_blocks(
        count, [&]<int N>(Index i) __attribute__((always_inline)) { sum_block<N>(taps, weights, tap_count, i, out); });
  }

  template <int N>
  CAPIBARA_PLANE_INLINE void sum_each_block(const T* const* taps, const T* const* weights, Index tap_count, Index at,
                                            T* out) {
    V sum[N] = {};
    for (Index t = 0; t < tap_count; ++t) {
      const T *x = taps[t] + at, *w = weights[t] + at;
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sum[v] += load(w + v * lanes) * load(x + v * lanes);
    }
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) store(out + at + v * lanes, sum[v]);
  }
  static void sum_each(const T* const* taps, const T* const* weights, Index tap_count, T* out, Index count) {
    Index i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) sum_each_block<4>(taps, weights, tap_count, i, out);
    for (; i + lanes <= count; i += lanes) sum_each_block<1>(taps, weights, tap_count, i, out);
    if (i < count && count >= lanes) return sum_each_block<1>(taps, weights, tap_count, count - lanes, out);
    for (; i < count; ++i) {
      T total(0);
      for (Index t = 0; t < tap_count; ++t) total += weights[t][i] * taps[t][i];
      out[i] = total;
    }
  }

  // Up to nine taps, each with one vector of sums. Elements that the last vector shares with the previous one are
  // masked out of both factors.
  template <int N>
  static void dots_of(const PlaneDots<T>& dots) {
    V sum[N] = {};
    const T* taps[N];
#pragma GCC unroll 9
    for (int t = 0; t < N; ++t) taps[t] = dots.taps[t];
    const Index whole = dots.columns / lanes * lanes, rest = dots.columns - whole;
    const M kept = dots.columns >= lanes ? from_on(lanes - rest, Lanes()) : ~from_on(rest, Lanes());
    const Index last = dots.columns >= lanes ? dots.columns - lanes : 0;
    for (Index y = 0; y < dots.rows; ++y) {
      const T* image = dots.image + y * dots.image_pitch;
      const Index row = y * dots.pitch;
      for (Index x = 0; x < whole; x += lanes) {
        const V own = load(image + x);
#pragma GCC unroll 9
        for (int t = 0; t < N; ++t) sum[t] += own * load(taps[t] + row + x);
      }
      if (rest == 0) continue;
      V own = {};
      if (whole != 0)
        own = reinterpret_cast<V>(reinterpret_cast<M>(load(image + last)) & kept);
      else
        for (Index x = 0; x < rest; ++x) own[x] = image[x];
#pragma GCC unroll 9
      for (int t = 0; t < N; ++t) {
        sum[t] += own * reinterpret_cast<V>(reinterpret_cast<M>(load(taps[t] + row + last)) & kept);
      }
    }
    for (int t = 0; t < N; ++t) {
      T total(0);
      for (Index i = 0; i < lanes; ++i) total += sum[t][i];
      dots.sums[t] += total;
    }
  }
  template <int... N>
  CAPIBARA_PLANE_INLINE void dots_any(const PlaneDots<T>& dots, std::integer_sequence<int, N...>) {
    (void)((dots.tap_count == N + 1 && (dots_of<N + 1>(dots), true)) || ...);
  }
  static void dots(const PlaneDots<T>& all_dots) {
    constexpr int together = 9;
    PlaneDots<T> some = all_dots;
    for (Index t = 0; t < all_dots.tap_count; t += together) {
      some.taps = all_dots.taps + t;
      some.sums = all_dots.sums + t;
      some.tap_count = all_dots.tap_count - t < together ? all_dots.tap_count - t : together;
      dots_any(some, std::make_integer_sequence<int, together>());
    }
  }
};

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
