// Many products of matrices of up to 4 x 4: one straight line of code for each size, a loop over the products around it.
#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/kernels/gemm.h"

namespace capibara::cpu {

namespace {

template <class T>
using TinyFunction = void (*)(int64_t begin, int64_t end, const T* left, int64_t left_step, const T* right, int64_t right_step, T* out);

template <class T, int M, int K, int N>
void tiny(int64_t begin, int64_t end, const T* __restrict left, int64_t left_step, const T* __restrict right, int64_t right_step, T* __restrict out) {
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

// Rows of one long matrix by one right operand, which stays in registers.
template <class T, int K, int N>
void rows(int64_t begin, int64_t end, const T* __restrict left, int64_t, const T* __restrict right, int64_t, T* __restrict out) {
  T y[K][N];
  for (int k = 0; k < K; ++k) {
    for (int j = 0; j < N; ++j) y[k][j] = right[k * N + j];
  }
  for (int64_t i = begin; i < end; ++i) {
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
bool multiply_tiny(int64_t batch, int64_t m, int64_t inner, int64_t n, const T* left, int64_t left_step, const T* right, int64_t right_step, T* out) {
  static constexpr auto products = tiny_table<T>(std::make_index_sequence<64>());
  static constexpr auto long_rows = rows_table<T>(std::make_index_sequence<16>());
  if (inner < 1 || inner > 4 || n < 1 || n > 4 || (m > 4 && batch != 1) || m < 1) return false;
  const bool by_rows = batch == 1;
  const TinyFunction<T> run = by_rows ? long_rows[static_cast<std::size_t>((inner - 1) * 4 + n - 1)]
                                      : products[static_cast<std::size_t>(((m - 1) * 4 + inner - 1) * 4 + n - 1)];
  const int64_t extent = by_rows ? m : batch, elements = by_rows ? inner + n : m * inner + inner * n + m * n;
  parallel_for_cost(extent, static_cast<double>(elements) * static_cast<double>(sizeof(T)) / 30, [&](int64_t begin, int64_t end) {
    run(begin, end, left, left_step, right, right_step, out);
    return 0;
  });
  return true;
}

template bool multiply_tiny<float>(int64_t, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*);
template bool multiply_tiny<double>(int64_t, int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, double*);

}  // namespace capibara::cpu
