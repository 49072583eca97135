// Tiles of convolutions in registers: some features by some output positions, and features by features.
#pragma once

#include "backends/cpu/kernels/planes/vectors.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace capibara::cpu {

template <class T, int Bytes>
struct PlaneTiles : PlaneVectors<T, Bytes> {
  using Own = PlaneVectors<T, Bytes>;
  using Index = typename Own::Index;
  using V = typename Own::V;
  using M = typename Own::M;
  using Lanes = typename Own::Lanes;
  using Own::from_on;
  using Own::lanes;
  using Own::load;
  using Own::store;

  template <int Rows, int Vectors>
  CAPIBARA_PLANE_INLINE void multiply(V (&sum)[Rows][Vectors], const T* left, const V (&right)[Vectors]) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[r][v] += right[v] * left[r];
    }
  }
  template <int Rows, int Vectors>
  CAPIBARA_PLANE_INLINE void write(const V (&sum)[Rows][Vectors], T* out, Index step, bool accumulate) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        T* to = out + r * step + v * lanes;
        store(to, accumulate ? load(to) + sum[r][v] : sum[r][v]);
      }
    }
  }
  // Existing sums are in the L2 cache.
  template <int Rows, int Vectors>
  CAPIBARA_PLANE_INLINE void prefetch(const T* sums) {
    for (int i = 0; i < Rows * Vectors; ++i) __builtin_prefetch(sums + i * lanes, 1);
  }

  // Lanes from `edge` on are read from a second address.
#if defined(__AVX512F__)
  using Mask = std::conditional_t<Bytes == 64, unsigned, M>;
#else
  using Mask = M;
#endif
  CAPIBARA_PLANE_INLINE Mask mask_from(Index edge) {
    if constexpr (std::is_same_v<Mask, unsigned>)
      return ((1u << lanes) - 1) & ~((1u << edge) - 1);
    else
      return from_on(edge, Lanes());
  }
  CAPIBARA_PLANE_INLINE V load_two(const T* first, const T* second, Mask behind) {
#if defined(__AVX512F__)
    if constexpr (Bytes == 64 && sizeof(T) == 4)
      return (V)_mm512_mask_loadu_ps((__m512)load(first), static_cast<__mmask16>(behind), second);
    else if constexpr (Bytes == 64)
      return (V)_mm512_mask_loadu_pd((__m512d)load(first), static_cast<__mmask8>(behind), second);
    else
#endif
      return behind ? load(second) : load(first);
  }

  // Split: a bit for each vector whose lanes are in two rows; merging them occupies a multiplier's issue slot.
  template <int Rows, int Vectors, int Split>
  CAPIBARA_PLANE_INLINE void multiply_places(const PlaneTile<T>& tile) {
    V sum[Rows][Vectors] = {};
    Mask behind[Vectors];
    const T *first[Vectors], *second[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      behind[v] = mask_from(tile.edge[v]);
      first[v] = tile.first[v];
      second[v] = tile.second[v];
    }
    const T* weights = tile.weights;
    const std::int32_t* offsets = tile.offsets;
    for (Index k = tile.inner; k > 0; --k, weights += Rows) {
      const Index at = *offsets++;
      V x[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        x[v] = (Split >> v & 1) ? load_two(first[v] + at, second[v] + at, behind[v]) : load(first[v] + at);
      multiply(sum, weights, x);
    }
    if (tile.width == Vectors * lanes) return write(sum, tile.out, tile.out_step, tile.accumulate);
    T edge[Rows * Vectors * lanes];
    write(sum, edge, Vectors * lanes, false);
    for (int r = 0; r < Rows; ++r) {
      T* to = tile.out + r * tile.out_step;
      const T* from = edge + r * Vectors * lanes;
      for (Index i = 0; i < tile.width; ++i) to[i] = tile.accumulate ? to[i] + from[i] : from[i];
    }
  }
  template <int Rows, int Vectors>
  static void tile(const PlaneTile<T>& tile) {
    const bool first = tile.edge[0] < lanes;
    if constexpr (Vectors == 1) {
      first ? multiply_places<Rows, 1, 1>(tile) : multiply_places<Rows, 1, 0>(tile);
    } else {
      if (tile.edge[1] < lanes)
        first ? multiply_places<Rows, Vectors, 3>(tile) : multiply_places<Rows, Vectors, 2>(tile);
      else
        first ? multiply_places<Rows, Vectors, 1>(tile) : multiply_places<Rows, Vectors, 0>(tile);
    }
  }

  template <int Rows, int Vectors>
  static void outer(const PlaneOuter<T>& pairs) {
    V sum[Rows][Vectors] = {};
    if (pairs.accumulate) prefetch<Rows, Vectors>(pairs.sums);
    for (Index y = 0; y < pairs.rows; ++y) {
      const T *left = pairs.left + y * pairs.left_pitch, *right = pairs.right + y * pairs.right_pitch;
      for (Index x = 0; x < pairs.columns; ++x, left += pairs.left_step, right += Vectors * lanes) {
        V row[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) row[v] = load(right + v * lanes);
        multiply(sum, left, row);
      }
    }
    write(sum, pairs.sums, Vectors * lanes, pairs.accumulate);
  }

  template <int First, int Second, int Third>
  static PlaneTileTable<T> table() {
    return {
        {First, Second, Third},
        {{tile<First, 1>, tile<First, 2>}, {tile<Second, 1>, tile<Second, 2>}, {tile<Third, 1>, tile<Third, 2>}},
        {{outer<First, 1>, outer<First, 2>}, {outer<Second, 1>, outer<Second, 2>}, {outer<Third, 1>, outer<Third, 2>}}};
  }
  // As many rows as sums fit in registers; vectors of 16 bytes are left to the GEMM tiles.
  static PlaneTileTable<T> tables() {
    if constexpr (Bytes == 64)
      return table<14, 8, 4>();
    else if constexpr (Bytes == 32)
      return table<6, 4, 2>();
    else
      return {};
  }
};

}  // namespace capibara::cpu
