// The innermost step of a product of matrices: one tile of the result held in registers while k runs.
//
// Plain vector types without unrolling: g++ keeps these accumulators in registers, but spills unrolled and intrinsic
// versions (measured on Neoverse-V1).
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/gemm.h"

namespace capibara::cpu {

// c[rows, columns] = or += a * b for packed panels; c is row-major with `stride` elements between rows.
template <class T>
using TileFunction = void (*)(int64_t k, const Real<T>* a, const Real<T>* b, T* c, int64_t stride, bool accumulate);

template <class T>
struct Tile {
  int rows, columns;
  TileFunction<T> run;
};

template <class R, int Bytes>
struct VectorOf {
  typedef R type __attribute__((vector_size(Bytes)));
  typedef R unaligned __attribute__((vector_size(Bytes), aligned(alignof(R)), may_alias));
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(R));
};

#define CAPIBARA_INLINE inline __attribute__((always_inline))

template <class R, int Bytes, int Rows, int Vectors>
CAPIBARA_INLINE void real_tile(int64_t k, const R* a, const R* b, R* c, int64_t stride, bool accumulate) {
  using V = typename VectorOf<R, Bytes>::type;
  using U = typename VectorOf<R, Bytes>::unaligned;
  constexpr int lanes = VectorOf<R, Bytes>::lanes, columns = lanes * Vectors;
  V sum[Rows][Vectors] = {};
  for (; k > 0; --k, a += Rows, b += columns) {
    V row[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) row[j] = *reinterpret_cast<const U*>(b + j * lanes);
#if defined(__aarch64__)
    // Whole registers of a, multiplied by lane: single elements would take eight registers.
    static_assert(Rows % lanes == 0);
    V column[Rows / lanes];
#pragma GCC unroll 8
    for (int i = 0; i < Rows / lanes; ++i) column[i] = *reinterpret_cast<const U*>(a + i * lanes);
#endif
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#if defined(__aarch64__)
      const R factor = column[i / lanes][i % lanes];
#else
      const R factor = a[i];
#endif
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) sum[i][j] += row[j] * factor;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      U* place = reinterpret_cast<U*>(c + i * stride + j * lanes);
      *place = accumulate ? *place + sum[i][j] : sum[i][j];
    }
  }
}

template <class R, int Bytes, int Rows, int Vectors>
CAPIBARA_INLINE void complex_tile(int64_t k, const R* a, const R* b, std::complex<R>* c, int64_t stride, bool accumulate) {
  using V = typename VectorOf<R, Bytes>::type;
  using U = typename VectorOf<R, Bytes>::unaligned;
  constexpr int lanes = VectorOf<R, Bytes>::lanes, columns = lanes * Vectors;
  V re[Rows][Vectors] = {}, im[Rows][Vectors] = {};
  for (; k > 0; --k, a += 2 * Rows, b += 2 * columns) {
    V x[Vectors], y[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      x[j] = *reinterpret_cast<const U*>(b + j * lanes);
      y[j] = *reinterpret_cast<const U*>(b + columns + j * lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) {
        re[i][j] += x[j] * a[i];
        re[i][j] -= y[j] * a[Rows + i];
        im[i][j] += y[j] * a[i];
        im[i][j] += x[j] * a[Rows + i];
      }
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      std::complex<R> value(re[i][j / lanes][j % lanes], im[i][j / lanes][j % lanes]);
      std::complex<R>& place = c[i * stride + j];
      place = accumulate ? place + value : value;
    }
  }
}

// The tile for this processor.
template <class T>
Tile<T> best_tile();

}  // namespace capibara::cpu
