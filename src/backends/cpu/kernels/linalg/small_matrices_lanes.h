// Small matrices, one in each lane of a vector: loads, stores, and sums of products.
//
// Work arrays hold a vector for every element. Orders are padded to whole blocks of four by ones on the diagonal, so
// that sums are computed in tiles of 4 x 4 elements, which need eight loads of vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/fft/fft_vectors.h"
#include "backends/cpu/kernels/linalg/small_matrices.h"

namespace capibara::cpu::small_matrices {

template <class R, int Bytes>
struct Lanes : fft::Vectors<R, Bytes> {
  using Own = fft::Vectors<R, Bytes>;
  using V = typename Own::V;
  using Own::count;
  using Own::read;
  using Own::turn;
  using Own::write;

  // ---- elements of `used` matrices, `step` apart, as vectors and back; lanes without a matrix repeat the last one
  // ----------

  static CAPIBARA_FFT_INLINE void load_run(const R* from, int64_t step, int64_t used, int64_t size, V* to) {
    auto lane_of = [&](int64_t lane) { return from + std::min(lane, used - 1) * step; };
    if (size < count) {
      for (int64_t e = 0; e < size; ++e) {
        V value;
        for (int lane = 0; lane < count; ++lane) value[lane] = lane_of(lane)[e];
        to[e] = value;
      }
      return;
    }
    for (int64_t e = 0; e < size; e += count) {
      const int64_t at = std::min<int64_t>(e, size - count);  // the last block may overlap the one before
      V block[count];
#pragma GCC unroll 16
      for (int lane = 0; lane < count; ++lane) block[lane] = read(lane_of(lane) + at);
      turn(block);
#pragma GCC unroll 16
      for (int i = 0; i < count; ++i) to[at + i] = block[i];
    }
  }
  static CAPIBARA_FFT_INLINE void store_run(const V* from, int64_t used, int64_t size, R* to, int64_t step) {
    if (size < count) {
      for (int64_t e = 0; e < size; ++e) {
        for (int64_t lane = 0; lane < used; ++lane) to[lane * step + e] = from[e][lane];
      }
      return;
    }
    for (int64_t e = 0; e < size; e += count) {
      const int64_t at = std::min<int64_t>(e, size - count);
      V block[count];
#pragma GCC unroll 16
      for (int i = 0; i < count; ++i) block[i] = from[at + i];
      turn(block);
      for (int64_t lane = 0; lane < used; ++lane) write(to + lane * step + at, block[lane]);
    }
  }
  // Rows of `cols` elements, in the work array `stride` vectors apart.
  static CAPIBARA_FFT_INLINE void load(const R* from, int64_t step, int64_t used, int64_t rows, int64_t cols, V* to,
                                       int64_t stride) {
    if (stride == cols) return load_run(from, step, used, rows * cols, to);
    if (cols < count) {  // loads all to the end of the array, then moves rows from there into place
      V* all = to + rows * (stride - cols);
      load_run(from, step, used, rows * cols, all);
      for (int64_t i = 0; i < rows; ++i) std::copy_n(all + i * cols, cols, to + i * stride);
      return;
    }
    for (int64_t i = 0; i < rows; ++i) load_run(from + i * cols, step, used, cols, to + i * stride);
  }
  static CAPIBARA_FFT_INLINE void store(V* from, int64_t stride, int64_t used, int64_t rows, int64_t cols, R* to,
                                        int64_t step) {
    if (cols < count && stride != cols) {
      for (int64_t i = 1; i < rows; ++i) std::copy_n(from + i * stride, cols, from + i * cols);
      stride = cols;
    }
    if (stride == cols) return store_run(from, used, rows * cols, to, step);
    for (int64_t i = 0; i < rows; ++i) store_run(from + i * stride, used, cols, to + i * cols, step);
  }
  // Rows and columns from n to `whole` become those of the identity.
  static CAPIBARA_FFT_INLINE void pad(V* a, int64_t n, int64_t whole, int64_t stride) {
    for (int64_t i = 0; i < whole; ++i) {
      for (int64_t j = i < n ? n : 0; j < whole; ++j) a[i * stride + j] = V{} + (i == j ? R(1) : R(0));
    }
  }

  // sums[i][j] -= the sum over k of x(i, k) * y(k, j).
  template <int Columns>
  static CAPIBARA_FFT_INLINE void subtract_products(V (&sums)[4][Columns], int64_t inner, const V* x, int64_t x_row,
                                                    int64_t x_step, const V* y, int64_t y_step, int64_t y_column) {
    for (int64_t k = 0; k < inner; ++k, x += x_step, y += y_step) {
      V right[Columns];
#pragma GCC unroll 4
      for (int j = 0; j < Columns; ++j) right[j] = y[j * y_column];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const V left = x[i * x_row];
#pragma GCC unroll 4
        for (int j = 0; j < Columns; ++j) sums[i][j] -= left * right[j];
      }
    }
  }

  static CAPIBARA_FFT_INLINE void read_block(V (&block)[4][4], const V* from, int64_t stride) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) block[i][j] = from[i * stride + j];
    }
  }
  static CAPIBARA_FFT_INLINE void write_block(const V (&block)[4][4], V* to, int64_t stride) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) to[i * stride + j] = block[i][j];
    }
  }
  static CAPIBARA_FFT_INLINE void take_root(V& x) {
    alignas(64) R numbers[count];
    write(numbers, x);
    for (R& number : numbers) number = std::sqrt(number);
    x = read(numbers);
  }
};

}  // namespace capibara::cpu::small_matrices
