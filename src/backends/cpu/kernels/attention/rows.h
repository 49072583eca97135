// The softmax of attention on a panel of logits: one row for each key, one column for each query.
//
// Columns fill vectors: maxima and sums over keys need no sums across lanes. Compiled for each width of vectors.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu::attention {

#define CAPIBARA_INLINE inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors are passed to functions that are inlined, no others

template <class C, int Bytes>
struct Lane {
  typedef C V __attribute__((vector_size(Bytes)));
  typedef std::int32_t I __attribute__((vector_size(Bytes)));
  static constexpr int count = Bytes / static_cast<int>(sizeof(C));

  static CAPIBARA_INLINE V load(const C* from) {
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static CAPIBARA_INLINE void store(C* to, V value) { std::memcpy(to, &value, sizeof value); }
  static CAPIBARA_INLINE V all(C value) { return V{} + value; }

  // The greater of two, by one instruction; b where it is NaN.
  static CAPIBARA_INLINE V greater(V a, V b) {
#if defined(__aarch64__)
    if constexpr (std::is_same_v<C, float> && Bytes == 16) return vmaxq_f32(a, b);
#endif
    return a > b ? a : b;
  }

  // 2^x for x up to 127; 0 below -126.5; the polynomial is within 2e-9 of it on [-0.5, 0.5].
  static CAPIBARA_INLINE V exp2(V x) {
    if constexpr (std::is_same_v<C, double>) {
      for (int i = 0; i < count; ++i) x[i] = std::exp2(x[i]);
      return x;
    } else {
      // 1.5 * 2^23, and the bias of exponents: its low bits are those of 2^x, all 0 for -127.
      constexpr float shift = 12582912.0f + 127.0f;
      const V inside = greater(all(-127.0f), x);
      const V shifted = inside + shift;
      const V rest = inside - (shifted - shift);
      // In pairs, whose sums are added into: the addend of a fused multiplication need not be copied first.
      const V square = rest * rest, high = rest * 0.00015345812f + 0.0013399932f;
      V middle = rest * 0.009618489f + 0.055503288f, low = rest * 0.24022647f + 0.6931472f;
      middle += high * square;
      low += middle * square;
      const V power = reinterpret_cast<V>(reinterpret_cast<I>(shifted) << 23);
      return power + power * (low * rest);
    }
  }
};

template <class C>
constexpr C minus_infinity = -std::numeric_limits<C>::infinity();

// Logits become exp2(factor (logit - maximum)); `maximum` and `sum` of the columns go on, earlier sums need `decay`.
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void softmax_rows(C* logits, int64_t rows, C factor, C* maximum, C* sum, C* decay) {
  using L = Lane<C, Bytes>;
  using V = typename L::V;
  constexpr int width = Vectors * L::count;
  V most[Vectors], base[Vectors], total[Vectors] = {};
  for (int v = 0; v < Vectors; ++v) most[v] = L::load(maximum + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const V x = L::load(logits + r * width + v * L::count);
      most[v] = L::greater(x, most[v]);
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    base[v] = most[v] == minus_infinity<C> ? V{} : most[v];
    L::store(decay + v * L::count, L::exp2((L::load(maximum + v * L::count) - base[v]) * factor));
    L::store(maximum + v * L::count, most[v]);
  }
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      C* at = logits + r * width + v * L::count;
      const V share = L::exp2((L::load(at) - base[v]) * factor);
      L::store(at, share);
      total[v] += share;
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    C* at = sum + v * L::count;
    L::store(at, L::load(at) * L::load(decay + v * L::count) + total[v]);
  }
}

// Logits become exp2(factor logit - base).
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void share_rows(C* logits, int64_t rows, C factor, const C* base) {
  using L = Lane<C, Bytes>;
  constexpr int width = Vectors * L::count;
  typename L::V bases[Vectors];
  for (int v = 0; v < Vectors; ++v) bases[v] = L::load(base + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      C* at = logits + r * width + v * L::count;
      L::store(at, L::exp2(L::load(at) * factor - bases[v]));
    }
  }
}

// The slopes of shares become those of logits: share (slope - delta).
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void slope_rows(const C* shares, C* slopes, int64_t rows, const C* delta) {
  using L = Lane<C, Bytes>;
  constexpr int width = Vectors * L::count;
  typename L::V deltas[Vectors];
  for (int v = 0; v < Vectors; ++v) deltas[v] = L::load(delta + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const int64_t at = r * width + v * L::count;
      L::store(slopes + at, L::load(shares + at) * (L::load(slopes + at) - deltas[v]));
    }
  }
}

// Rows of sums by one factor for each column.
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void scale_rows(C* sums, int64_t rows, const C* factor) {
  using L = Lane<C, Bytes>;
  constexpr int width = Vectors * L::count;
  typename L::V factors[Vectors];
  for (int v = 0; v < Vectors; ++v) factors[v] = L::load(factor + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      C* at = sums + r * width + v * L::count;
      L::store(at, L::load(at) * factors[v]);
    }
  }
}

}  // namespace capibara::cpu::attention
