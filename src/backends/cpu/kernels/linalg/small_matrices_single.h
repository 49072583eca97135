// One small triangular system with one right-hand side: vectors run along the rows or columns of its matrix.
//
// Four unknowns at a time: what the solved ones contribute to them is summed in vectors, then a triangle of 4 x 4
// numbers is solved. A system that is upper triangular, as it is read, is solved from its end.
#pragma once

#include "backends/cpu/kernels/fft/fft_vectors.h"
#include "backends/cpu/kernels/linalg/small_matrices.h"

namespace capibara::cpu::small_matrices {

template <class R, int Bytes>
struct Single {
  // Element (i, k) of the matrix is a[i * row + k * column]; one of the strides is 1.
  struct System {
    int64_t order, row, column;
    bool from_end, unit;
    const R* a;
    R* x;  // the right-hand side, and then the solution
  };

  // The lanes of the widest vectors, of those half as wide, and so on.
  template <int lanes>
  using Vector = fft::Vectors<R, lanes* static_cast<int>(sizeof(R))>;
  static constexpr int widest = Bytes / static_cast<int>(sizeof(R)) < 4 ? 4 : Bytes / static_cast<int>(sizeof(R));

  // The unknowns [first, first + count) of a block, in the order in which they are solved.
  static CAPIBARA_FFT_INLINE void solve_block(const System& s, int64_t first, int64_t count) {
    R solved[4];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = s.from_end ? first + count - 1 - i : first + i;
      const R* own = s.a + at * s.row;
      R value = s.x[at];
      for (int64_t k = 0; k < i; ++k)
        value -= own[(s.from_end ? first + count - 1 - k : first + k) * s.column] * solved[k];
      solved[i] = s.unit ? value : value * (R(1) / own[at * s.column]);
      s.x[at] = solved[i];
    }
  }

  // x[i] -= the sum over a block's four unknowns of their columns' elements; i in [begin, end).
  template <int lanes>
  static CAPIBARA_FFT_INLINE int64_t subtract_columns(const R* columns, int64_t stride, const R* solved, R* x,
                                                      int64_t begin, int64_t end) {
    using V = Vector<lanes>;
    for (; begin + lanes <= end; begin += lanes) {
      auto sum = V::read(x + begin);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) sum -= V::read(columns + k * stride + begin) * solved[k];
      V::write(x + begin, sum);
    }
    return begin;
  }
  template <int lanes>
  static CAPIBARA_FFT_INLINE int64_t subtract_columns_narrowing(const R* columns, int64_t stride, const R* solved, R* x,
                                                                int64_t begin, int64_t end) {
    begin = subtract_columns<lanes>(columns, stride, solved, x, begin, end);
    if constexpr (lanes > 4) return subtract_columns_narrowing<lanes / 2>(columns, stride, solved, x, begin, end);
    return begin;
  }

  // sums[i] += the products of four rows with what is solved, over k in [begin, end).
  template <int lanes>
  static CAPIBARA_FFT_INLINE void add_products(const R* rows, int64_t stride, const R* x, int64_t begin, int64_t end,
                                               typename Vector<4>::V (&sums)[4]) {
    using V = Vector<lanes>;
    typename V::V wide[4] = {};
    for (; begin + lanes <= end; begin += lanes) {
      const auto solved = V::read(x + begin);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) wide[i] += V::read(rows + i * stride + begin) * solved;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] += to_four<lanes>(wide[i]);
    if constexpr (lanes > 4) add_products<lanes / 2>(rows, stride, x, begin, end, sums);
  }
  template <int lanes>
  static CAPIBARA_FFT_INLINE typename Vector<4>::V to_four(const typename Vector<lanes>::V& wide) {
    if constexpr (lanes == 4) {
      return wide;
    } else {
      return to_four<lanes / 2>(half<lanes, 0>(wide, std::make_index_sequence<lanes / 2>()) +
                                half<lanes, 1>(wide, std::make_index_sequence<lanes / 2>()));
    }
  }
  template <int lanes, int which, std::size_t... i>
  static CAPIBARA_FFT_INLINE typename Vector<lanes / 2>::V half(const typename Vector<lanes>::V& wide,
                                                                std::index_sequence<i...>) {
    return __builtin_shufflevector(wide, wide, (which * lanes / 2 + i)...);
  }

  static CAPIBARA_FFT_INLINE void solve(const System& s) {
    const int64_t n = s.order, blocks = n / 4, rest = n % 4;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = s.from_end ? n - 4 * (block + 1) : 4 * block;
      const int64_t begin = s.from_end ? first + 4 : 0, end = s.from_end ? n : first;  // what is solved
      if (s.column == 1 && begin < end) {
        typename Vector<4>::V sums[4] = {};
        add_products<widest>(s.a + first * s.row, s.row, s.x, begin, end, sums);
        for (int i = 0; i < 4; ++i) s.x[first + i] -= (sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]);
      }
      solve_block(s, first, 4);
      if (s.column != 1) {
        const R* columns = s.a + first * s.column;
        const R solved[4] = {s.x[first], s.x[first + 1], s.x[first + 2], s.x[first + 3]};
        const int64_t from = s.from_end ? 0 : first + 4, to = s.from_end ? first : n;
        for (int64_t i = subtract_columns_narrowing<widest>(columns, s.column, solved, s.x, from, to); i < to; ++i) {
          for (int k = 0; k < 4; ++k) s.x[i] -= columns[k * s.column + i] * solved[k];
        }
      }
    }
    if (!rest) return;
    const int64_t first = s.from_end ? 0 : 4 * blocks;
    if (s.column == 1) {
      for (int64_t i = first; i < first + rest; ++i) {
        for (int64_t k = s.from_end ? rest : 0; k < (s.from_end ? n : first); ++k)
          s.x[i] -= s.a[i * s.row + k] * s.x[k];
      }
    }
    solve_block(s, first, rest);
  }
};

}  // namespace capibara::cpu::small_matrices
