// Cholesky factors, triangular solves and lu of as many matrices at once as a vector has lanes, and the code for this
// processor.
#include "backends/cpu/kernels/fft/fft_vectors.h"
#include "backends/cpu/kernels/linalg/small_matrices.h"
#include "backends/cpu/kernels/linalg/small_matrices_lanes.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

namespace capibara::cpu::small_matrices {

namespace {

// One small triangular system with one right-hand side, vectorised along the rows or columns of its matrix.
//
// Four unknowns at a time: the contributions of solved unknowns are summed in vectors, then a 4 x 4 triangle is
// solved. Systems that are upper triangular in the order they are read are solved from the end.
template <class R, int Bytes>
struct Single {
  // Element (i, k) of the matrix is a[i * row + k * column]; one of the strides is 1.
  struct System {
    int64_t order, row, column;
    bool from_end, unit;
    const R* a;
    R* x;  // the right-hand side, and then the solution
  };

  // The lanes of the widest vectors, then half as many, and so on.
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

  // x[i] -= the four unknowns of a block times their columns' elements; i in [begin, end).
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

  // sums[i] += the products of four rows with solved unknowns, over k in [begin, end).
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
      const int64_t begin = s.from_end ? first + 4 : 0, end = s.from_end ? n : first;  // the solved ones
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

// As many matrices at once as a vector has lanes.
template <class R, int Bytes>
struct Algorithms : Lanes<R, Bytes> {
  using Own = Lanes<R, Bytes>;
  using V = typename Own::V;
  using Own::count;
  using Own::load;
  using Own::pad;
  using Own::read_block;
  using Own::store;
  using Own::take_root;
  using Own::write_block;

  // ---- cholesky -----------------------------------------------------------------------------------------------------

  static CAPIBARA_FFT_INLINE void cholesky(const CholeskyGroup<R>& group) {
    const int64_t n = group.order, whole = padded_order(n), stride = row_stride(n);
    V* a = reinterpret_cast<V*>(group.work);
    load(group.in, n * n, group.used, n, n, a, stride);
    if (whole != n) pad(a, n, whole, stride);
    V failed{};  // nonzero in lanes whose matrix is not positive definite
    for (int64_t j0 = 0; j0 < whole; j0 += 4) {
      V* diagonal = a + j0 * stride;
      V block[4][4], inverse[4];
      read_block(block, diagonal + j0, stride);
      Own::template subtract_products<4>(block, j0, diagonal, stride, 1, diagonal, 1, stride);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const V square = block[j][j];
        failed = square > V{} ? failed : V{} + R(1);
        V root = square > V{} ? square : V{} + R(1);
        take_root(root);
        block[j][j] = root;
        inverse[j] = R(1) / root;
#pragma GCC unroll 4
        for (int i = j + 1; i < 4; ++i) {
          block[i][j] *= inverse[j];
          block[j][i] = V{};
        }
#pragma GCC unroll 4
        for (int i = j + 1; i < 4; ++i) {
#pragma GCC unroll 4
          for (int l = j + 1; l <= i; ++l) block[i][l] -= block[i][j] * block[l][j];
        }
      }
      write_block(block, diagonal + j0, stride);
      for (int64_t i0 = j0 + 4; i0 < whole; i0 += 4) {
        V* rows = a + i0 * stride;
        V sums[4][4];
        read_block(sums, rows + j0, stride);
        Own::template subtract_products<4>(sums, j0, rows, stride, 1, diagonal, 1, stride);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 4
          for (int k = 0; k < j; ++k) {
            const V factor = diagonal[j * stride + j0 + k];
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) sums[i][j] -= sums[i][k] * factor;
          }
#pragma GCC unroll 4
          for (int i = 0; i < 4; ++i) sums[i][j] *= inverse[j];
        }
        write_block(sums, rows + j0, stride);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = (i / 4 + 1) * 4; j < n; ++j) a[i * stride + j] = V{};
    }
    store(a, stride, group.used, n, n, group.out, n * n);
    for (int64_t lane = 0; lane < group.used; ++lane) {
      if (failed[lane] != 0) std::fill_n(group.out + lane * n * n, n * n, std::numeric_limits<R>::quiet_NaN());
    }
  }

  // ---- triangular solves: always by forward substitution, with matrices transposed or read from the end as needed
  // -------------

  template <int Columns>
  static CAPIBARA_FFT_INLINE void substitute(const V* a, int64_t a_row, int64_t a_step, V* x, int64_t x_row,
                                             int64_t x_column, int64_t whole, const V* inverse, bool unit) {
    for (int64_t i0 = 0; i0 < whole; i0 += 4) {
      V sums[4][Columns];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < Columns; ++j) sums[i][j] = x[(i0 + i) * x_row + j * x_column];
      }
      const V* rows = a + i0 * a_row;
      Own::template subtract_products<Columns>(sums, i0, rows, a_row, a_step, x, x_row, x_column);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
        for (int k = 0; k < i; ++k) {
          const V factor = rows[i * a_row + (i0 + k) * a_step];
#pragma GCC unroll 4
          for (int j = 0; j < Columns; ++j) sums[i][j] -= factor * sums[k][j];
        }
#pragma GCC unroll 4
        for (int j = 0; j < Columns; ++j) {
          if (!unit) sums[i][j] *= inverse[i0 + i];
          x[(i0 + i) * x_row + j * x_column] = sums[i][j];
        }
      }
    }
  }

  static CAPIBARA_FFT_INLINE void solve(const SolveGroup<R>& group) {
    const int64_t n = group.order, whole = padded_order(n), stride = row_stride(n), others = group.others;
    const int64_t rows = group.left ? n : others, cols = group.left ? others : n;
    V* a = reinterpret_cast<V*>(group.work);
    V* inverse = a + whole * stride;
    V* x = inverse + whole;
    load(group.a, n * n, group.used, n, n, a, stride);
    if (whole != n) pad(a, n, whole, stride);
    // Zeroes the padding of b: whole rows after it, or columns.
    const int64_t x_stride = group.left ? others : stride;
    load(group.b, rows * cols, group.used, rows, cols, x, x_stride);
    if (group.left) {
      std::fill(x + n * x_stride, x + whole * x_stride, V{});
    } else {
      for (int64_t i = 0; i < rows; ++i) std::fill(x + i * x_stride + n, x + i * x_stride + whole, V{});
    }
    // X T = B is solved as T' X' = B'. An upper matrix becomes lower when read from its end, where the padding is
    // solved first: its ones and zeros change nothing.
    const bool turned = group.transpose == group.left;
    int64_t a_row = turned ? 1 : stride, a_step = turned ? stride : 1;
    int64_t x_row = group.left ? x_stride : 1;
    const int64_t x_column = group.left ? 1 : x_stride;
    const V* from = a;
    V* to = x;
    const bool reversed = group.lower == turned;
    if (!group.unit) {
      for (int64_t i = 0; i < whole; ++i) inverse[reversed ? whole - 1 - i : i] = R(1) / a[i * stride + i];
    }
    if (reversed) {
      from += (whole - 1) * (stride + 1);
      to += (whole - 1) * x_row;
      a_row = -a_row;
      a_step = -a_step;
      x_row = -x_row;
    }
    int64_t j = 0;
    for (; j + 4 <= others; j += 4)
      substitute<4>(from, a_row, a_step, to + j * x_column, x_row, x_column, whole, inverse, group.unit);
    for (; j < others; ++j)
      substitute<1>(from, a_row, a_step, to + j * x_column, x_row, x_column, whole, inverse, group.unit);
    store(x, x_stride, group.used, rows, cols, group.out, rows * cols);
  }

  static CAPIBARA_FFT_INLINE void solve_vector(const SolveGroup<R>& group) {
    const int64_t n = group.order;
    if (group.out != group.b) std::copy_n(group.b, n, group.out);
    const bool turned = group.transpose == group.left;  // as in solve
    Single<R, Bytes>::solve({n, turned ? 1 : n, turned ? n : 1, group.lower == turned, group.unit, group.a, group.out});
  }

  // ---- lu: four columns at a time, applying the transformations of earlier columns ----------------------------------

  static CAPIBARA_FFT_INLINE void lu(const LuGroup<R>& group) {
    const int64_t rows = group.rows, cols = group.cols, steps = std::min(rows, cols);
    const int64_t whole_rows = padded_order(rows), stride = row_stride(cols);
    V* a = reinterpret_cast<V*>(group.work);
    load(group.in, rows * cols, group.used, rows, cols, a, stride);
    for (int64_t i = 0; i < whole_rows; ++i)
      std::fill(a + i * stride + (i < rows ? cols : 0), a + (i + 1) * stride, V{});
    for (int64_t j0 = 0; j0 < cols; j0 += 4) {
      const int64_t above = std::min(j0, whole_rows);
      substitute<4>(a, stride, 1, a + j0, stride, 1, above, nullptr, true);
      for (int64_t i0 = above; i0 < whole_rows; i0 += 4) {
        V* part = a + i0 * stride;
        V sums[4][4];
        read_block(sums, part + j0, stride);
        Own::template subtract_products<4>(sums, j0, part, stride, 1, a + j0, stride, 1);
        write_block(sums, part + j0, stride);
      }
      for (int64_t k = j0; k < std::min(j0 + 4, steps); ++k) {
        exchange_rows(group, a, k, stride);
        const V* pivots = a + k * stride;
        const V pivot = pivots[k];
        for (int64_t i = k + 1; i < rows; ++i) {
          V* row = a + i * stride;
          // A column of zeros is left unchanged.
          const V factor = pivot == V{} ? V{} : row[k] / pivot;
          row[k] = pivot == V{} ? row[k] : factor;
          for (int64_t j = k + 1; j < j0 + 4; ++j) row[j] -= factor * pivots[j];
        }
      }
    }
    store(a, stride, group.used, rows, cols, group.out, rows * cols);
  }

  // Swaps row k with the first row that has the largest magnitude in column k, which differs by lane.
  static CAPIBARA_FFT_INLINE void exchange_rows(const LuGroup<R>& group, V* a, int64_t k, int64_t stride) {
    auto size_of = [](const V& x, V& size) { size = x < V{} ? -x : x; };
    V best, largest = V{} + static_cast<R>(k);
    size_of(a[k * stride + k], best);
    for (int64_t i = k + 1; i < group.rows; ++i) {
      V size;
      size_of(a[i * stride + k], size);
      largest = size > best ? V{} + static_cast<R>(i) : largest;
      best = size > best ? size : best;
    }
    const int64_t steps = std::min(group.rows, group.cols);
    for (int64_t lane = 0; lane < count; ++lane) {
      const auto from = static_cast<int64_t>(largest[lane]);
      if (lane < group.used) group.pivots[lane * steps + k] = static_cast<int>(from);
      if (from == k) continue;
      R *x = reinterpret_cast<R*>(a + k * stride) + lane, *y = reinterpret_cast<R*>(a + from * stride) + lane;
      for (int64_t j = 0; j < group.cols; ++j) std::swap(x[j * count], y[j * count]);
    }
  }
};

#define CAPIBARA_SMALL_MATRICES(NAME, TARGET, BYTES)                                                              \
  template <class R>                                                                                              \
  TARGET void cholesky_##NAME(const CholeskyGroup<R>& group) {                                                    \
    Algorithms<R, BYTES>::cholesky(group);                                                                        \
  }                                                                                                               \
  template <class R>                                                                                              \
  TARGET void solve_##NAME(const SolveGroup<R>& group) {                                                          \
    Algorithms<R, BYTES>::solve(group);                                                                           \
  }                                                                                                               \
  template <class R>                                                                                              \
  TARGET void solve_vector_##NAME(const SolveGroup<R>& group) {                                                   \
    Algorithms<R, BYTES>::solve_vector(group);                                                                    \
  }                                                                                                               \
  template <class R>                                                                                              \
  TARGET void lu_##NAME(const LuGroup<R>& group) {                                                                \
    Algorithms<R, BYTES>::lu(group);                                                                              \
  }                                                                                                               \
  template <class R>                                                                                              \
  Code<R> code_##NAME() {                                                                                         \
    return {BYTES / static_cast<int64_t>(sizeof(R)), cholesky_##NAME<R>, solve_##NAME<R>, solve_vector_##NAME<R>, \
            lu_##NAME<R>};                                                                                        \
  }
CAPIBARA_SMALL_MATRICES(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_SMALL_MATRICES(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_SMALL_MATRICES(avx512, CAPIBARA_AVX512, 64)
#endif
#undef CAPIBARA_SMALL_MATRICES

template <class R>
Code<R> best_code() {
#if defined(__x86_64__)
  if (has_avx512()) return code_avx512<R>();
  if (has_avx2()) return code_avx2<R>();
#endif
  return code_plain<R>();
}

}  // namespace

template <class R>
const Code<R>& code() {
  static const Code<R> found = best_code<R>();
  return found;
}
template const Code<float>& code();
template const Code<double>& code();

}  // namespace capibara::cpu::small_matrices
