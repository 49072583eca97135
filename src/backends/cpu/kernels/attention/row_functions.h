// The loops over rows of attention for the widest vectors of this processor, and those for single queries.
#pragma once

#include "backends/cpu/kernels/attention/dropout.h"

namespace capibara::cpu::attention {

// The products of `count` rows by one more, each `size` long.
template <class C, int Bytes>
CAPIBARA_INLINE void dot_rows(const C* rows, int64_t count, int64_t size, const C* by, C* out, int64_t out_step) {
  using L = Lane<C, Bytes>;
  using V = typename L::V;
  const int64_t paired = size - size % (2 * L::count), whole = size - size % L::count;
  for (int64_t r = 0; r < count; ++r, rows += size) {
    V first = {}, second = {};
    for (int64_t i = 0; i < paired; i += 2 * L::count) {
      first += L::load(rows + i) * L::load(by + i);
      second += L::load(rows + i + L::count) * L::load(by + i + L::count);
    }
    if (paired < whole) first += L::load(rows + paired) * L::load(by + paired);
    first += second;
    C sum = 0;
    for (int i = 0; i < L::count; ++i) sum += first[i];
    for (int64_t i = whole; i < size; ++i) sum += rows[i] * by[i];
    out[r * out_step] = sum;
  }
}

// sums += weight row, for `count` rows; four at a time, so that sums are read and written once for four.
template <class C, int Bytes>
CAPIBARA_INLINE void add_rows(C* sums, const C* rows, int64_t count, int64_t size, const C* weights, int64_t step) {
  using L = Lane<C, Bytes>;
  const int64_t whole = size - size % L::count;
  int64_t r = 0;
  for (; r + 4 <= count; r += 4, rows += 4 * size, weights += 4 * step) {
    const C a = weights[0], b = weights[step], c = weights[2 * step], d = weights[3 * step];
    for (int64_t i = 0; i < whole; i += L::count) {
      const auto near = L::load(rows + i) * a + L::load(rows + size + i) * b;
      const auto far = L::load(rows + 2 * size + i) * c + L::load(rows + 3 * size + i) * d;
      L::store(sums + i, L::load(sums + i) + (near + far));
    }
    for (int64_t i = whole; i < size; ++i) {
      sums[i] += (rows[i] * a + rows[size + i] * b) + (rows[2 * size + i] * c + rows[3 * size + i] * d);
    }
  }
  for (; r < count; ++r, rows += size, weights += step) {
    for (int64_t i = 0; i < size; ++i) sums[i] += rows[i] * weights[0];
  }
}

// ---- the widest vectors of this processor ------------------------------------------------------------------------

// By the number of vectors of a panel, less one; and those for rows.
template <class C>
struct RowFunctions {
  void (*softmax[3])(C* logits, int64_t rows, C factor, C* maximum, C* sum, C* decay);
  void (*shares[3])(C* logits, int64_t rows, C factor, const C* base);
  void (*slopes[3])(const C* shares, C* slopes, int64_t rows, const C* delta);
  void (*scale[3])(C* sums, int64_t rows, const C* factor);
  void (*drop[3])(const Dropout&, C* values, C* second, int64_t first, int64_t last, int64_t first_key,
                  int64_t first_query, C scale);
  void (*dot)(const C* rows, int64_t count, int64_t size, const C* by, C* out, int64_t out_step);
  void (*add)(C* sums, const C* rows, int64_t count, int64_t size, const C* weights, int64_t weight_step);
};

#define CAPIBARA_ATTENTION_ROWS(NAME, TARGET, BYTES)                                                            \
  template <class C>                                                                                            \
  TARGET void NAME##_dot(const C* rows, int64_t count, int64_t size, const C* by, C* out, int64_t step) {       \
    dot_rows<C, BYTES>(rows, count, size, by, out, step);                                                       \
  }                                                                                                             \
  template <class C>                                                                                            \
  TARGET void NAME##_add(C* sums, const C* rows, int64_t count, int64_t size, const C* weights, int64_t step) { \
    add_rows<C, BYTES>(sums, rows, count, size, weights, step);                                                 \
  }                                                                                                             \
  template <class C, int Vectors>                                                                               \
  struct NAME##Rows {                                                                                           \
    TARGET static void softmax(C* logits, int64_t rows, C factor, C* maximum, C* sum, C* decay) {               \
      softmax_rows<C, BYTES, Vectors>(logits, rows, factor, maximum, sum, decay);                               \
    }                                                                                                           \
    TARGET static void shares(C* logits, int64_t rows, C factor, const C* base) {                               \
      share_rows<C, BYTES, Vectors>(logits, rows, factor, base);                                                \
    }                                                                                                           \
    TARGET static void slopes(const C* shares, C* slopes, int64_t rows, const C* delta) {                       \
      slope_rows<C, BYTES, Vectors>(shares, slopes, rows, delta);                                               \
    }                                                                                                           \
    TARGET static void scale(C* sums, int64_t rows, const C* factor) {                                          \
      scale_rows<C, BYTES, Vectors>(sums, rows, factor);                                                        \
    }                                                                                                           \
    TARGET static void drop(const Dropout& dropout, C* values, C* second, int64_t first, int64_t last,          \
                            int64_t first_key, int64_t first_query, C scale) {                                  \
      drop_rows<C, BYTES, Vectors>(dropout, values, second, first, last, first_key, first_query, scale);        \
    }                                                                                                           \
  };
CAPIBARA_ATTENTION_ROWS(Plain, , 16)
#if defined(__x86_64__)
CAPIBARA_ATTENTION_ROWS(Avx2, __attribute__((target("avx2,fma"))), 32)
CAPIBARA_ATTENTION_ROWS(Avx512, __attribute__((target("avx512f,avx512dq"))), 64)
#endif

template <class C, template <class, int> class R>
RowFunctions<C> all_widths(decltype(RowFunctions<C>::dot) dot, decltype(RowFunctions<C>::add) add) {
  return {{R<C, 1>::softmax, R<C, 2>::softmax, R<C, 3>::softmax},
          {R<C, 1>::shares, R<C, 2>::shares, R<C, 3>::shares},
          {R<C, 1>::slopes, R<C, 2>::slopes, R<C, 3>::slopes},
          {R<C, 1>::scale, R<C, 2>::scale, R<C, 3>::scale},
          {R<C, 1>::drop, R<C, 2>::drop, R<C, 3>::drop},
          dot,
          add};
}

// For the lanes that the tile of the matmul has.
template <class C>
RowFunctions<C> row_functions(int64_t lanes) {
#if defined(__x86_64__)
  if (lanes * static_cast<int64_t>(sizeof(C)) == 64) return all_widths<C, Avx512Rows>(Avx512_dot<C>, Avx512_add<C>);
  if (lanes * static_cast<int64_t>(sizeof(C)) == 32) return all_widths<C, Avx2Rows>(Avx2_dot<C>, Avx2_add<C>);
#endif
  return all_widths<C, PlainRows>(Plain_dot<C>, Plain_add<C>);
}

}  // namespace capibara::cpu::attention
