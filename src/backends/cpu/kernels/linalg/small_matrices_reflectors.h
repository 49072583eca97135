// Householder reflectors of small matrices, one matrix in each lane.
#pragma once

#include "backends/cpu/kernels/linalg/small_matrices_columns.h"

namespace capibara::cpu::small_matrices {

template <class R, int Bytes>
struct Reflectors : Columns<R, Bytes> {
  using Own = Columns<R, Bytes>;
  using V = typename Own::V;
  using M = typename Own::M;
  using Own::any;
  using Own::root;
  using Own::signed_as;
  using Own::size_of;

  // sums[j] = the sum over i of v[i] * columns(i, j).
  template <int Columns>
  static CAPIBARA_FFT_INLINE void dot(const V* v, int64_t size, const V* columns, int64_t stride, V (&sums)[Columns]) {
    V odd[Columns];
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) sums[j] = odd[j] = V{};
    int64_t i = 0;
    for (; i + 2 <= size; i += 2) {
#pragma GCC unroll 4
      for (int j = 0; j < Columns; ++j) {
        sums[j] += v[i] * columns[j * stride + i];
        odd[j] += v[i + 1] * columns[j * stride + i + 1];
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) {
      if (i < size) sums[j] += v[i] * columns[j * stride + i];
      sums[j] += odd[j];
    }
  }

  // Columns become (1 - tau v v') columns.
  template <int Columns>
  static CAPIBARA_FFT_INLINE void reflect(const V* v, const V& tau, int64_t size, V* columns, int64_t stride) {
    V sums[Columns];
    dot<Columns>(v, size, columns, stride, sums);
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) sums[j] *= tau;
    for (int64_t i = 0; i < size; ++i) {
      const V factor = v[i];
#pragma GCC unroll 4
      for (int j = 0; j < Columns; ++j) columns[j * stride + i] -= factor * sums[j];
    }
  }
  static CAPIBARA_FFT_INLINE void reflect_all(const V* v, const V& tau, int64_t size, V* columns, int64_t stride,
                                              int64_t cols) {
    int64_t j = 0;
    for (; j + 4 <= cols; j += 4) reflect<4>(v, tau, size, columns + j * stride, stride);
    if (cols - j == 3) reflect<3>(v, tau, size, columns + j * stride, stride);
    if (cols - j == 2) reflect<2>(v, tau, size, columns + j * stride, stride);
    if (cols - j == 1) reflect<1>(v, tau, size, columns + j * stride, stride);
  }

  // The reflector that maps x to a multiple of the first unit vector, with LAPACK's signs: x becomes v with v[0] = 1.
  // If x already is such a multiple, tau = 0.
  static CAPIBARA_FFT_INLINE void make(V* x, int64_t size, V& tau, V& multiple) {
    const V first = x[0];
    x[0] = V{} + R(1);
    tau = V{};
    multiple = first;
    if (size == 1) return;
    V squares[1], scale = V{} + R(1);
    dot<1>(x + 1, size - 1, x + 1, 0, squares);
    V tail = squares[0], start = first;
    M reflects = tail == tail;
    // If squares would overflow or lose digits, the column is first divided by its largest number.
    constexpr R low = std::numeric_limits<R>::min() / (std::numeric_limits<R>::epsilon() * R(0.01)),
                high = std::numeric_limits<R>::max() / R(8);
    const V total = tail + first * first;
    const M usual = (tail > low) & (total < high);
    if (any(~usual)) {
      V largest{};
      for (int64_t i = 1; i < size; ++i) {
        const V here = size_of(x[i]);
        largest = here > largest ? here : largest;
      }
      reflects = usual | (largest > V{}) | (tail != tail);
      const V head = size_of(first);
      largest = head > largest ? head : largest;
      const V bounded = largest > std::numeric_limits<R>::min() ? largest : V{} + std::numeric_limits<R>::min();
      scale = usual ? scale : bounded;
      const V inverse = usual ? V{} + R(1) : R(1) / bounded;
      V sum{};
      for (int64_t i = 1; i < size; ++i) {
        x[i] *= inverse;
        sum += x[i] * x[i];
      }
      tail = usual ? tail : sum;
      start = first * inverse;
    }
    const V norm = root(start * start + tail), target = -signed_as(norm, start);
    tau = reflects ? (target - start) / target : V{};
    multiple = reflects ? target * scale : first;
    const V factor = reflects ? R(1) / (start - target) : V{};
    for (int64_t i = 1; i < size; ++i) x[i] *= factor;
  }

  // The first `cols` columns of the product of reflectors; reflector k is v + k * (stride + 1), of size - k numbers.
  static CAPIBARA_FFT_INLINE void multiply(const V* v, const V* taus, int64_t reflectors, int64_t size, int64_t stride,
                                           V* out, int64_t cols, int64_t out_stride) {
    for (int64_t j0 = 0; j0 < cols; j0 += 4) {
      const int64_t width = std::min<int64_t>(4, cols - j0);
      for (int64_t j = j0; j < j0 + width; ++j) {
        V* column = out + j * out_stride;
        std::fill(column, column + size, V{});
        column[j] = V{} + R(1);
      }
      for (int64_t k = std::min(reflectors, j0 + width) - 1; k >= 0; --k) {
        reflect_all(v + k * (stride + 1), taus[k], size - k, out + j0 * out_stride + k, out_stride, width);
      }
    }
  }
};

}  // namespace capibara::cpu::small_matrices
