// Dots of a vector and the rows of a matrix: four rows at a time, all but the last few elements in vectors.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/gemm/gemv_widen.h"

namespace capibara::cpu::vector_loop {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// A vector of x by one of each row, added to the sums of these.
template <int Lanes, int Rows, class T, class R>
CAPIBARA_INLINE void add_products(const R* x, const T* rows, int64_t row_step, int64_t k, Vector<R, Lanes>* sum) {
  Vector<R, Lanes> own, weights;
  widen<Lanes>(x + k, own);
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    widen<Lanes>(rows + r * row_step + k, weights);
    sum[r] += own * weights;
  }
}

// Adds what is left from k on, by vectors as wide as fit, folds the sums to half their lanes, and so on.
template <int Lanes, int Rows, class T, class R>
CAPIBARA_INLINE void finish_dots(const R* x, const T* rows, int64_t row_step, int64_t k, int64_t inner,
                                 Vector<R, Lanes>* sum, R* out) {
  if (k + Lanes <= inner) {
    add_products<Lanes, Rows>(x, rows, row_step, k, sum);
    k += Lanes;
  }
  if constexpr (has_half<Lanes, R>) {
    Vector<R, Lanes / 2> half[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) add_halves<Lanes, R>(sum[r], half[r], std::make_integer_sequence<int, Lanes / 2>());
    finish_dots<Lanes / 2, Rows>(x, rows, row_step, k, inner, half, out);
  } else {
    if constexpr (Rows == 4 && Lanes == 4) {
      const auto &a = sum[0], &b = sum[1], &c = sum[2], &d = sum[3];
      const auto ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const auto cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const auto all = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
      __builtin_memcpy(out, &all, sizeof(all));
    } else {
      for (int r = 0; r < Rows; ++r) {
        if constexpr (Lanes == 4)
          out[r] = (sum[r][0] + sum[r][2]) + (sum[r][1] + sum[r][3]);
        else
          out[r] = sum[r][0] + sum[r][1];
      }
    }
    for (; k < inner; ++k) {
      for (int r = 0; r < Rows; ++r) out[r] += x[k] * widened_one(rows[r * row_step + k]);
    }
  }
}

template <int Lanes, int Rows, class T, class R>
CAPIBARA_INLINE void dots_of(const R* x, const T* rows, int64_t row_step, int64_t inner, R* out) {
  using V = Vector<R, Lanes>;
  V sum[Rows] = {}, other[Rows] = {};
  int64_t k = 0;
  for (; k + 2 * Lanes <= inner; k += 2 * Lanes) {
    add_products<Lanes, Rows>(x, rows, row_step, k, sum);
    add_products<Lanes, Rows>(x, rows, row_step, k + Lanes, other);
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) sum[r] += other[r];
  finish_dots<Lanes, Rows>(x, rows, row_step, k, inner, sum, out);
}

template <int Lanes, class T, class R>
CAPIBARA_INLINE void dots_in(const R* x, const T* rows, int64_t row_step, int64_t inner, R* out, int64_t count) {
  int64_t r = 0;
  for (; r + 4 <= count; r += 4) dots_of<Lanes, 4>(x, rows + r * row_step, row_step, inner, out + r);
  for (; r < count; ++r) dots_of<Lanes, 1>(x, rows + r * row_step, row_step, inner, out + r);
}

#undef CAPIBARA_INLINE

}  // namespace capibara::cpu::vector_loop
