// Many matmuls of up to 4 x 4: straight-line code for each size, with a loop over the matmuls around it.
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

namespace {

template <class T>
using TinyFunction = void (*)(int64_t begin, int64_t end, const T* left, int64_t left_step, const T* right,
                              int64_t right_step, T* out);

template <class T, int M, int K, int N>
void tiny(int64_t begin, int64_t end, const T* __restrict left, int64_t left_step, const T* __restrict right,
          int64_t right_step, T* __restrict out) {
  for (int64_t b = begin; b < end; ++b) {
    const T *x = left + b * left_step, *y = right + b * right_step;
    T* to = out + b * (M * N);
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) {
      T sum[N];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sum[j] = x[i * K] * y[j];
#pragma GCC unroll 4
      for (int k = 1; k < K; ++k) {
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) sum[j] += x[i * K + k] * y[k * N + j];
      }
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) to[i * N + j] = sum[j];
    }
  }
}

template <int Lane, class V>
inline __attribute__((always_inline)) V splat(V v) {
  if constexpr (sizeof(v[0]) == 4)
    return __builtin_shufflevector(v, v, Lane, Lane, Lane, Lane);
  else
    return __builtin_shufflevector(v, v, Lane, Lane);
}

// The dot of a row with its factors, in every lane; x: consecutive rows of K elements.
template <int Row, int K, class V>
inline __attribute__((always_inline)) V row_sum(const V* x, const V* factor) {
  constexpr int lanes = 16 / static_cast<int>(sizeof(x[0][0])), at = Row * K;
  V sum = factor[0] * splat<at % lanes>(x[at / lanes]);
  if constexpr (K > 1) sum += factor[1] * splat<(at + 1) % lanes>(x[(at + 1) / lanes]);
  if constexpr (K > 2) sum += factor[2] * splat<(at + 2) % lanes>(x[(at + 2) / lanes]);
  if constexpr (K > 3) sum += factor[3] * splat<(at + 3) % lanes>(x[(at + 3) / lanes]);
  return sum;
}

// Rows of one long matrix by one right operand, which stays in registers. Takes as many rows at a time as a vector has
// lanes, so that operand and result are both whole vectors. Every row is computed with its columns in the lanes that
// they have in the result, so that joining rows takes one select per boundary between them.
template <class T, int K, int N>
void rows(int64_t begin, int64_t end, const T* __restrict left, int64_t, const T* __restrict right, int64_t,
          T* __restrict out) {
  typedef T V __attribute__((vector_size(16)));
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef Bits Mask __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  constexpr int lanes = 16 / static_cast<int>(sizeof(T));
  // The contribution of row r of a group to vector v of the result: factors of its columns, in its lanes of the vector.
  V factor[N][2][K];
  Mask later[N];  // lanes of a vector's second row; with fewer columns than lanes rows may be more, and are
                  // joined one by one
  constexpr bool two_rows = N >= lanes || N == 3;
  if constexpr (two_rows) {
    for (int v = 0; v < N; ++v) {
      const int first = v * lanes / N;
      for (int l = 0; l < lanes; ++l) {
        const int place = v * lanes + l, second = place / N - first;
        later[v][l] = second == 1 ? Bits(-1) : Bits(0);
        for (int r = 0; r < 2; ++r) {
          for (int k = 0; k < K; ++k) factor[v][r][k][l] = right[k * N + place % N];
        }
      }
    }
  }
  V by_row[lanes][K];  // for fewer columns than lanes: each row in its own lanes
  if constexpr (N < lanes) {
    for (int r = 0; r < lanes; ++r) {
      for (int l = 0; l < lanes; ++l) {
        const int column = (l + r * (lanes - N)) % lanes;
        for (int k = 0; k < K; ++k) by_row[r][k][l] = column < N ? right[k * N + column] : T(0);
      }
    }
  }
  T y[K][N];
  for (int k = 0; k < K; ++k) {
    for (int j = 0; j < N; ++j) y[k][j] = right[k * N + j];
  }
  int64_t i = begin;
  if constexpr (two_rows) {
    for (; i + lanes <= end; i += lanes) {
      __builtin_prefetch(left + i * K + 1024 / sizeof(T));
      V x[K];
#pragma GCC unroll 4
      for (int v = 0; v < K; ++v) x[v] = *reinterpret_cast<const Unaligned*>(left + i * K + v * lanes);
      auto store = [&](int v, V sum) __attribute__((always_inline)) {
        *reinterpret_cast<Unaligned*>(out + i * N + v * lanes) = sum;
      };
      if constexpr (N == 3 && lanes == 4) {
        // A row spans two vectors, in different lanes: it is computed once.
        const V row0 = row_sum<0, K>(x, by_row[0]), row1 = row_sum<1, K>(x, by_row[1]);
        const V row2 = row_sum<2, K>(x, by_row[2]), row3 = row_sum<3, K>(x, by_row[3]);
        store(0, later[0] ? row1 : row0);
        store(1, later[1] ? row2 : row1);
        store(2, later[2] ? row3 : row2);
      } else {
        auto one = [&]<int Number>(std::integral_constant<int, Number>) __attribute__((always_inline)) {
          constexpr int first = Number * lanes / N, last = (Number * lanes + lanes - 1) / N;
          V sum = row_sum<first, K>(x, factor[Number][0]);
          if constexpr (last != first) sum = later[Number] ? row_sum<last, K>(x, factor[Number][1]) : sum;
          store(Number, sum);
        };
        [&]<int... Number>(std::integer_sequence<int, Number...>) __attribute__((always_inline)) {
          (one(std::integral_constant<int, Number>()), ...);
        }
        (std::make_integer_sequence<int, N>());
      }
    }
  }
  for (; i < end; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      T sum = left[i * K] * y[0][j];
#pragma GCC unroll 4
      for (int k = 1; k < K; ++k) sum += left[i * K + k] * y[k][j];
      out[i * N + j] = sum;
    }
  }
}

// Entry ((m - 1) * 4 + k - 1) * 4 + n - 1.
template <class T, std::size_t... I>
constexpr auto tiny_table(std::index_sequence<I...>) {
  return std::array<TinyFunction<T>, sizeof...(I)>{tiny<T, I / 16 + 1, I / 4 % 4 + 1, I % 4 + 1>...};
}
template <class T, std::size_t... I>
constexpr auto rows_table(std::index_sequence<I...>) {
  return std::array<TinyFunction<T>, sizeof...(I)>{rows<T, I / 4 + 1, I % 4 + 1>...};
}

}  // namespace

template <class T>
bool multiply_tiny(int64_t batch, int64_t m, int64_t inner, int64_t n, const T* left, int64_t left_step, const T* right,
                   int64_t right_step, T* out) {
  static constexpr auto products = tiny_table<T>(std::make_index_sequence<64>());
  static constexpr auto long_rows = rows_table<T>(std::make_index_sequence<16>());
  if (inner < 1 || inner > 4 || n < 1 || n > 4 || (m > 4 && batch != 1) || m < 1) return false;
  const bool by_rows = batch == 1;
  const TinyFunction<T> run = by_rows ? long_rows[static_cast<std::size_t>((inner - 1) * 4 + n - 1)]
                                      : products[static_cast<std::size_t>(((m - 1) * 4 + inner - 1) * 4 + n - 1)];
  // Rows in fours, whichever thread computes them: the remaining rows are computed differently.
  const int64_t unit = by_rows ? 4 : 1, whole = by_rows ? m : batch,
                elements = by_rows ? inner + n : m * inner + inner * n + m * n;
  parallel_for_cost((whole + unit - 1) / unit,
                    static_cast<double>(unit * elements) * static_cast<double>(sizeof(T)) / 30,
                    [&](int64_t begin, int64_t end) {
                      run(begin * unit, std::min(end * unit, whole), left, left_step, right, right_step, out);
                      return 0;
                    });
  return true;
}

template bool multiply_tiny<float>(int64_t, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t,
                                   float*);
template bool multiply_tiny<double>(int64_t, int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t,
                                    double*);

}  // namespace capibara::cpu
