// Loops of a vector of floats by a matrix of floats, bfloat16 or bytes, widened in registers, and of doubles by a
// matrix of doubles: weights are read once, at their size.
//
// Included by gemv.cpp alone, which has the pieces that threads share out.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/gemm/gemv_dots.h"
#include "backends/cpu/kernels/gemm/gemv_widen.h"
#include "core/runtime/processor.h"

namespace capibara::cpu {

// Loops of one matrix type, for the processor at hand.
template <class T>
struct VectorLoops {
  using Sum = vector_loop::SumOf<T>;
  // out[n] = sum over k of x[k] * matrix[k * row_step + n].
  void (*add_rows)(const Sum* x, const T* matrix, int64_t row_step, int64_t inner, Sum* out, int64_t count);
  // out[r] = sum over k of x[k] * rows[r * row_step + k].
  void (*dots)(const Sum* x, const T* rows, int64_t row_step, int64_t inner, Sum* out, int64_t count);
};

namespace vector_loop {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// Vectors x `Lanes` columns of eight rows by their factors, added to out. Each column adds its rows in order, so that
// its bits do not depend on its neighbours.
template <int Lanes, int Vectors, class T, class R>
CAPIBARA_INLINE void add_columns(const R* factor, const T* row, int64_t row_step, R* out) {
  using V = Vector<R, Lanes>;
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

// The columns from n on, by vectors as wide as still fit. Returns how many are done.
template <int Lanes, class T, class R>
CAPIBARA_INLINE int64_t add_last_columns(const R* factor, const T* row, int64_t row_step, R* out, int64_t n,
                                         int64_t count) {
  for (; n + Lanes <= count; n += Lanes) add_columns<Lanes, 1>(factor, row + n, row_step, out + n);
  if constexpr (has_half<Lanes, R>) n = add_last_columns<Lanes / 2>(factor, row, row_step, out, n, count);
  return n;
}

template <int Lanes, class T, class R>
CAPIBARA_INLINE void add_rows_in(const R* x, const T* matrix, int64_t row_step, int64_t inner, R* __restrict out,
                                 int64_t count) {
  for (int64_t n = 0; n < count; ++n) out[n] = 0;
  int64_t k = 0;
  for (; k + 8 <= inner; k += 8) {
    const T* row = matrix + k * row_step;
    int64_t n = 0;
    for (; n + 4 * Lanes <= count; n += 4 * Lanes) add_columns<Lanes, 4>(x + k, row + n, row_step, out + n);
    n = add_last_columns<Lanes>(x + k, row, row_step, out, n, count);
    for (; n < count; ++n) {
      for (int t = 0; t < 8; ++t) out[n] += x[k + t] * widened_one(row[t * row_step + n]);
    }
  }
  for (; k < inner; ++k) {
    for (int64_t n = 0; n < count; ++n) out[n] += x[k] * widened_one(matrix[k * row_step + n]);
  }
}

#define CAPIBARA_LOOPS(NAME, TARGET, BYTES)                                                                      \
  template <class T, class R>                                                                                    \
  TARGET void add_rows_##NAME(const R* x, const T* matrix, int64_t row_step, int64_t inner, R* out,              \
                              int64_t count) {                                                                   \
    add_rows_in<BYTES / static_cast<int>(sizeof(R))>(x, matrix, row_step, inner, out, count);                    \
  }                                                                                                              \
  template <class T, class R>                                                                                    \
  TARGET void dots_##NAME(const R* x, const T* rows, int64_t row_step, int64_t inner, R* out, int64_t count) {   \
    dots_in<BYTES / static_cast<int>(sizeof(R))>(x, rows, row_step, inner, out, count);                          \
  }
CAPIBARA_LOOPS(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_LOOPS(avx2, __attribute__((target("avx2,fma"))), 32)
CAPIBARA_LOOPS(avx512, __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), 64)
#endif
#undef CAPIBARA_LOOPS

template <class T>
inline VectorLoops<T> choose_loops() {
#if defined(__x86_64__)
  if (has_avx512()) {
    return {add_rows_avx512<T, SumOf<T>>, dots_avx512<T, SumOf<T>>};
  }
  if (has_avx2()) return {add_rows_avx2<T, SumOf<T>>, dots_avx2<T, SumOf<T>>};
#endif
  return {add_rows_plain<T, SumOf<T>>, dots_plain<T, SumOf<T>>};
}

}  // namespace vector_loop

template <class T>
const VectorLoops<T>& vector_loops() {
  static const VectorLoops<T> loops = vector_loop::choose_loops<T>();
  return loops;
}

#undef CAPIBARA_INLINE

}  // namespace capibara::cpu
