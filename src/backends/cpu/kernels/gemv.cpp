// Products that packing would not pay for: small matrices, vectors by matrices, and dots of long vectors.
#include <algorithm>

#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/scratch.h"
#include "runtime/interrupt.h"

namespace capibara::cpu {

namespace {

// The textbook product: std::complex's own checks for infinities that became NaN, which jax does not.
template <class T>
CAPIBARA_INLINE void add_product(T& sum, const T& x, const T& y) {
  if constexpr (Parts<T>::count == 2) {
    sum = T((sum.real() + x.real() * y.real()) - x.imag() * y.imag(), (sum.imag() + x.real() * y.imag()) + x.imag() * y.real());
  } else {
    sum += x * y;
  }
}

// Sum of x[i * x_step] * y[i]: sixteen sums side by side, then folded in halves.
template <class T>
T dot(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t count) {
  constexpr int64_t side = 16;
  T sums[side] = {};
  int64_t i = 0;
  if (x_step == 1 && y_step == 1) {
    for (; i + side <= count; i += side) {
      for (int64_t s = 0; s < side; ++s) add_product(sums[s], x[i + s], y[i + s]);
    }
  } else {
    for (; i + side <= count; i += side) {
      for (int64_t s = 0; s < side; ++s) add_product(sums[s], x[(i + s) * x_step], y[(i + s) * y_step]);
    }
  }
  for (int64_t s = 0; i < count; ++i, ++s) add_product(sums[s], x[i * x_step], y[i * y_step]);
  for (int64_t half = side / 2; half > 0; half /= 2) {
    for (int64_t s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  return sums[0];
}

constexpr int64_t dot_block = 8192;  // long dots are sums of blocks, whoever computes them

// One long dot: blocks side by side, joined in order.
template <class T>
T long_dot(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t count) {
  if (count <= dot_block) return dot(x, x_step, y, y_step, count);
  int64_t blocks = (count + dot_block - 1) / dot_block;
  Scratch<T> partial(blocks, "a dot product");
  parallel_for_cost(blocks, static_cast<double>(dot_block) * 0.2 * Parts<T>::count, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t first = b * dot_block;
      partial[b] = dot(x + first * x_step, x_step, y + first * y_step, y_step, std::min(dot_block, count - first));
    }
    return 0;
  });
  T total = partial[0];
  for (int64_t b = 1; b < blocks; ++b) total += partial[b];
  return total;
}

// out[n] = sum of x[k] * matrix[k][n] where the matrix's rows are contiguous: four rows at a time added to a strip of out.
template <class T>
void add_rows(const T* x, int64_t x_step, const T* matrix, int64_t row_step, int64_t inner, T* out, int64_t count) {
  std::fill_n(out, count, T(0));
  int64_t k = 0;
  for (; k + 4 <= inner; k += 4) {
    const T x0 = x[k * x_step], x1 = x[(k + 1) * x_step], x2 = x[(k + 2) * x_step], x3 = x[(k + 3) * x_step];
    const T* row = matrix + k * row_step;
    for (int64_t n = 0; n < count; ++n) {
      T sum = out[n];
      add_product(sum, x0, row[n]);
      add_product(sum, x1, row[n + row_step]);
      add_product(sum, x2, row[n + 2 * row_step]);
      add_product(sum, x3, row[n + 3 * row_step]);
      out[n] = sum;
    }
  }
  for (; k < inner; ++k) {
    const T factor = x[k * x_step];
    const T* row = matrix + k * row_step;
    for (int64_t n = 0; n < count; ++n) add_product(out[n], factor, row[n]);
  }
}

// A vector by a matrix whose axes are regular; `places` says where the results go. False: not for these strides.
template <class T>
bool vector_by_matrix(const Matrix<T>& vector, const Matrix<T>& matrix, T* out, const Axis& places) {
  const int64_t inner = matrix.inner.extent(), count = matrix.free.extent();
  if (!vector.inner.is_regular() || !matrix.inner.is_regular() || !matrix.free.is_regular() || !places.is_regular()) return false;
  const T* x = vector.data + vector.free.at(0);
  const int64_t x_step = vector.inner.stride();
  out += places.at(0);
  if (count == 1) {
    *out = long_dot(x, x_step, matrix.data + matrix.free.at(0), matrix.inner.stride(), inner);
    return true;
  }
  const double cost = static_cast<double>(inner) * static_cast<double>(sizeof(T)) / 20;  // bound by memory, about 20 GB/s
  if (matrix.inner.stride() == 1) {
    parallel_for_cost(count, cost, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) out[n * places.stride()] = dot(x, x_step, matrix.data + n * matrix.free.stride(), 1, inner);
      return 0;
    });
    return true;
  }
  if (matrix.free.stride() != 1 || places.stride() != 1) return false;
  constexpr int64_t strip = 1024;
  int64_t strips = (count + strip - 1) / strip;
  parallel_for_cost(strips, cost * static_cast<double>(std::min(strip, count)), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      int64_t first = s * strip;
      add_rows(x, x_step, matrix.data + first, matrix.inner.stride(), inner, out + first, std::min(strip, count - first));
    }
    return 0;
  });
  return true;
}

// Straight loops; each result meets k in rising order.
template <class T>
void multiply_small(const Matrix<T>& left, const Matrix<T>& right, T* out, const Axis& rows, const Axis& columns) {
  const int64_t inner = left.inner.extent(), n = columns.extent();
  const bool by_rows = n > 1 && right.free.contiguous(0, n) && columns.contiguous(0, n);
  for (int64_t i = 0; i < rows.extent(); ++i) {
    const T* x = left.data + left.free.at(i);
    T* target = out + rows.at(i);
    if (by_rows) {
      target += columns.at(0);
      for (int64_t j = 0; j < n; ++j) target[j] = T(0);
      for (int64_t k = 0; k < inner; ++k) {
        const T factor = x[left.inner.at(k)];
        const T* row = right.data + right.inner.at(k) + right.free.at(0);
        for (int64_t j = 0; j < n; ++j) add_product(target[j], factor, row[j]);
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        const T* y = right.data + right.free.at(j);
        T sum(0);
        for (int64_t k = 0; k < inner; ++k) add_product(sum, x[left.inner.at(k)], y[right.inner.at(k)]);
        target[columns.at(j)] = sum;
      }
    }
  }
}

}  // namespace

template <class T>
void multiply(const Matrix<T>& left, const Matrix<T>& right, T* out, const Axis& rows, const Axis& columns) {
  const int64_t m = rows.extent(), n = columns.extent(), inner = left.inner.extent();
  if (m == 0 || n == 0) return;
  constexpr double small = 4096;  // products
  if (inner == 0 || static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(inner) <= small) {
    return multiply_small(left, right, out, rows, columns);
  }
  if (m == 1 && vector_by_matrix(left, right, out + rows.at(0), columns)) return;
  if (n == 1 && vector_by_matrix(right, left, out + columns.at(0), rows)) return;
  multiply_packed<T>(
      inner,
      [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, Real<T>* block) {
        pack_matrix<T>(left.data, left.free, left.inner, first, count, k0, k, width, block);
      },
      [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, Real<T>* block) {
        pack_matrix<T>(right.data, right.free, right.inner, first, count, k0, k, width, block);
      },
      out, rows, columns);
}

#define CAPIBARA_INSTANTIATE(T) template void multiply<T>(const Matrix<T>&, const Matrix<T>&, T*, const Axis&, const Axis&);
CAPIBARA_INSTANTIATE(float)
CAPIBARA_INSTANTIATE(double)
CAPIBARA_INSTANTIATE(std::uint32_t)
CAPIBARA_INSTANTIATE(std::uint64_t)
CAPIBARA_INSTANTIATE(std::complex<float>)
CAPIBARA_INSTANTIATE(std::complex<double>)
#undef CAPIBARA_INSTANTIATE

}  // namespace capibara::cpu
