// Batches of matrices in row-major arrays, and the kernels of linear algebra by file.
#pragma once

#include "backends/reference/kernels.h"
#include "core/array/element.h"

#include <limits>
#include <vector>

namespace capibara::reference {

KernelList plain_linalg_kernels();   // loops that need no module
KernelList lapack_linalg_kernels();  // decompositions that call LAPACK
// The kernel of a foreign call such as lapack_sgetrf_ffi; null for an unknown target.
Kernel find_lapack_call(std::string_view target, std::size_t operands);

// The last two dimensions are matrices, all others are the batch.
struct MatrixBatch {
  int64_t count = 1, rows = 0, cols = 0;
  int64_t size() const { return rows * cols; }

  explicit MatrixBatch(const Shape& shape) : rows(shape[shape.size() - 2]), cols(shape[shape.size() - 1]) {
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  }
};

// The number of vectors along the last dimension.
inline int64_t vector_count(const Shape& shape) {
  int64_t count = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  return count;
}

// rows x cols, row-major to column-major; with the two numbers exchanged, the inverse.
template <class T>
void transpose_matrix(const T* from, int64_t rows, int64_t cols, T* to) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) to[j * rows + i] = from[i * cols + j];
  }
}

// NaN in the real part, and in the imaginary part if there is one.
template <class T>
T not_a_number() {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    using Real = typename T::value_type;
    return {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::quiet_NaN()};
  } else {
    return std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T>
T conjugate(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return std::conj(x);
}

// Calls f(Type<T>{}) with the compute type of a floating dtype.
template <class F>
Arrays visit_inexact(const char* operation, DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64:
      return f(Type<double>{});
    case DType::complex64:
      return f(Type<std::complex<float>>{});
    case DType::complex128:
      return f(Type<std::complex<double>>{});
    default:
      if (is_floating(dtype)) return f(Type<float>{});
      throw TypeError(concat(operation, ": a floating or complex operand is needed, got ", to_string(dtype)));
  }
}

}  // namespace capibara::reference
