// Products of matrices: packed blocks in the order of BLIS, for any place of the elements in memory.
//
// The type T is what products are computed in: float, double, complex of these, or uint32/uint64 for integers, which wrap.
// Every element of the result meets k in rising order, in blocks that depend on the shape alone: the number of threads
// changes nothing.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/thread_pool.h"

namespace capibara::cpu {

template <class T>
struct Parts {
  using Real = T;
  static constexpr int count = 1;
};
template <class T>
struct Parts<std::complex<T>> {
  using Real = T;
  static constexpr int count = 2;
};
template <class T>
using Real = typename Parts<T>::Real;

// Dimensions of an array taken together as the rows or columns of a matrix: where each begins, in elements.
class Axis {
 public:
  Axis() = default;
  // In row-major order over the sizes given.
  Axis(std::span<const int64_t> sizes, std::span<const int64_t> strides);
  static Axis regular(int64_t extent, int64_t stride);

  int64_t extent() const { return extent_; }
  bool is_regular() const { return offsets_.empty(); }
  int64_t stride() const { return stride_; }  // of a regular one
  int64_t at(int64_t i) const { return offsets_.empty() ? i * stride_ : offsets_[static_cast<std::size_t>(i)]; }
  bool contiguous(int64_t first, int64_t count) const { return at(first + count - 1) - at(first) == count - 1 && (is_regular() || runs_[static_cast<std::size_t>(first)] >= count); }

 private:
  int64_t extent_ = 1, stride_ = 0;
  std::vector<int64_t> offsets_, runs_;  // runs: how many of the next ones lie next to each other
};

// Writes rows [first, first + count) and k [k0, k0 + k) of an operand as panels of `width` rows: panel[k][row], absent rows
// as zeros. A complex panel has for each k the real parts, then the imaginary ones.
template <class T>
using Pack = FunctionRef<void(int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, Real<T>* out)>;

// Calls f.operator()<Width>() for the width of a panel that best_tile may ask for.
template <class F>
void with_width(int64_t width, F&& f) {
  switch (width) {
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    case 4: return f.template operator()<4>();
    case 6: return f.template operator()<6>();
    case 8: return f.template operator()<8>();
    case 12: return f.template operator()<12>();
    case 14: return f.template operator()<14>();
    case 16: return f.template operator()<16>();
    default: return f.template operator()<32>();
  }
}

// One element of a packed panel.
template <class T>
void put_packed(Real<T>* panel, int64_t row, int64_t width, const T& value) {
  if constexpr (Parts<T>::count == 2) {
    panel[row] = value.real();
    panel[width + row] = value.imag();
  } else {
    panel[row] = value;
  }
}

// The packing of a matrix in memory.
template <class T>
void pack_matrix(const T* data, const Axis& rows, const Axis& inner, int64_t first, int64_t count, int64_t k0, int64_t k,
                 int64_t width, Real<T>* out);

// out[rows, columns] = left[rows, inner] * right[inner, columns]; both operands are packed with their k last.
template <class T>
void multiply_packed(int64_t inner, Pack<T> left, Pack<T> right, T* out, const Axis& rows, const Axis& columns);

// The same for matrices in memory, by the way that suits their sizes: without packing where they are small or vectors.
template <class T>
struct Matrix {
  const T* data;
  const Axis &free, &inner;
};
template <class T>
void multiply(const Matrix<T>& left, const Matrix<T>& right, T* out, const Axis& rows, const Axis& columns);

// Nanoseconds that one core needs for this many multiplications and additions, roughly.
template <class T>
double multiply_cost(double products) {
  return products * (sizeof(Real<T>) == 4 ? 0.03 : 0.06) * (Parts<T>::count == 2 ? 4 : 1);
}

}  // namespace capibara::cpu
