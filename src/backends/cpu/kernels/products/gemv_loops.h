// Loops of a float vector by a matrix of floats, bfloat16 or bytes, widened in registers: weights are read once, at
// their size.
//
// Included by gemv.cpp alone, which has the pieces that threads share out.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/products/gemv_widen.h"
#include "runtime/processor.h"

namespace capibara::cpu {

// Loops of one matrix type, for the processor at hand.
template <class T>
struct VectorLoops {
  // out[n] = sum over k of x[k] * matrix[k * row_step + n].
  void (*add_rows)(const float* x, const T* matrix, int64_t row_step, int64_t inner, float* out, int64_t count);
  // out[r] = sum over k of x[k] * rows[r * row_step + k].
  void (*dots)(const float* x, const T* rows, int64_t row_step, int64_t inner, float* out, int64_t count);
};

namespace vector_loop {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// Vectors x `Lanes` columns of eight rows by their factors, added to out. Each column adds its rows in order, so that
// its bits do not depend on its neighbours.
template <int Lanes, int Vectors, class T>
CAPIBARA_INLINE void add_columns(const float* factor, const T* row, int64_t row_step, float* out) {
  using V = Vector<float, Lanes>;
  V sum[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) __builtin_memcpy(&sum[v], out + v * Lanes, sizeof(V));
#pragma GCC unroll 8
  for (int t = 0; t < 8; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      V weights;
      widen<Lanes>(row + t * row_step + v * Lanes, weights);
      sum[v] += factor[t] * weights;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) __builtin_memcpy(out + v * Lanes, &sum[v], sizeof(V));
}

template <int Lanes, class T>
CAPIBARA_INLINE void add_rows_in(const float* x, const T* matrix, int64_t row_step, int64_t inner,
                                 float* __restrict out, int64_t count) {
  for (int64_t n = 0; n < count; ++n) out[n] = 0;
  int64_t k = 0;
  for (; k + 8 <= inner; k += 8) {
    const T* row = matrix + k * row_step;
    int64_t n = 0;
    for (; n + 4 * Lanes <= count; n += 4 * Lanes) add_columns<Lanes, 4>(x + k, row + n, row_step, out + n);
    for (; n + Lanes <= count; n += Lanes) add_columns<Lanes, 1>(x + k, row + n, row_step, out + n);
    for (; n < count; ++n) {
      for (int t = 0; t < 8; ++t) out[n] += x[k + t] * widened_one(row[t * row_step + n]);
    }
  }
  for (; k < inner; ++k) {
    for (int64_t n = 0; n < count; ++n) out[n] += x[k] * widened_one(matrix[k * row_step + n]);
  }
}

template <int Lanes, int Rows, class T>
CAPIBARA_INLINE void dots_of(const float* x, const T* rows, int64_t row_step, int64_t inner, float* out) {
  using V = Vector<float, Lanes>;
  V sum[Rows][2] = {};
  int64_t k = 0;
  for (; k + 2 * Lanes <= inner; k += 2 * Lanes) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      V own;
      widen<Lanes>(x + k + v * Lanes, own);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        V weights;
        widen<Lanes>(rows + r * row_step + k + v * Lanes, weights);
        sum[r][v] += own * weights;
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    V both = sum[r][0] + sum[r][1];
    for (int half = Lanes / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) both[lane] += both[lane + half];
    }
    float total = both[0];
    for (int64_t p = k; p < inner; ++p) total += x[p] * widened_one(rows[r * row_step + p]);
    out[r] = total;
  }
}

template <int Lanes, class T>
CAPIBARA_INLINE void dots_in(const float* x, const T* rows, int64_t row_step, int64_t inner, float* out,
                             int64_t count) {
  int64_t r = 0;
  for (; r + 4 <= count; r += 4) dots_of<Lanes, 4>(x, rows + r * row_step, row_step, inner, out + r);
  for (; r < count; ++r) dots_of<Lanes, 1>(x, rows + r * row_step, row_step, inner, out + r);
}

#define CAPIBARA_LOOPS(NAME, TARGET, LANES)                                                                            \
  template <class T>                                                                                                   \
  TARGET void add_rows_##NAME(const float* x, const T* matrix, int64_t row_step, int64_t inner, float* out,            \
                              int64_t count) {                                                                         \
    add_rows_in<LANES>(x, matrix, row_step, inner, out, count);                                                        \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  TARGET void dots_##NAME(const float* x, const T* rows, int64_t row_step, int64_t inner, float* out, int64_t count) { \
    dots_in<LANES>(x, rows, row_step, inner, out, count);                                                              \
  }
CAPIBARA_LOOPS(plain, , 4)
#if defined(__x86_64__)
CAPIBARA_LOOPS(avx2, __attribute__((target("avx2,fma"))), 8)
CAPIBARA_LOOPS(avx512, __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), 16)
#endif
#undef CAPIBARA_LOOPS

template <class T>
inline VectorLoops<T> choose_loops() {
#if defined(__x86_64__)
  if (has_avx512()) {
    return {add_rows_avx512<T>, dots_avx512<T>};
  }
  if (has_avx2()) return {add_rows_avx2<T>, dots_avx2<T>};
#endif
  return {add_rows_plain<T>, dots_plain<T>};
}

}  // namespace vector_loop

template <class T>
const VectorLoops<T>& vector_loops() {
  static const VectorLoops<T> loops = vector_loop::choose_loops<T>();
  return loops;
}

#undef CAPIBARA_INLINE

}  // namespace capibara::cpu
