// Matmuls: packed blocks in the order of BLIS, for any memory layout of the operands.
//
// Every element of the result accumulates k in increasing order, in blocks that depend on the shape alone: the number
// of threads changes nothing. Complex matmuls become real ones: the left operand and the result as stored, with real
// and imaginary parts as two inner elements and two columns, the right operand expanded to [[re, im], [-im, re]].
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "core/runtime/thread_pool.h"

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

// A kind of matmul: the type of packed panels, the type of sums, and how many k of a row are contiguous in a panel.
template <class P, class S, int Together>
struct Kind {
  using Packed = P;
  using Sum = S;
  static constexpr int together = Together;
};
struct Bfloat16Bits {  // the bits of a bfloat16
  std::uint16_t bits;
};
struct HalfBits {  // a float16
  std::uint16_t bits;
};
using Singles = Kind<float, float, 1>;
using Doubles = Kind<double, double, 1>;
using Words = Kind<std::uint32_t, std::uint32_t, 1>;  // integers wrap
using Longs = Kind<std::uint64_t, std::uint64_t, 1>;
// Only on processors that multiply them: has_tile.
#if defined(__x86_64__)
using Bfloat16 = Kind<Bfloat16Bits, float, 2>;
#else
using Bfloat16 = Kind<Bfloat16Bits, float, 4>;
#endif
using SignedBytes = Kind<std::int8_t, std::uint32_t, 8>;
using UnsignedBytes = Kind<std::uint8_t, std::uint32_t, 8>;

template <class Kind>
bool has_tile();

template <class T>
struct KindOf;
template <>
struct KindOf<float> {
  using type = Singles;
};
template <>
struct KindOf<double> {
  using type = Doubles;
};
template <>
struct KindOf<std::uint32_t> {
  using type = Words;
};
template <>
struct KindOf<std::uint64_t> {
  using type = Longs;
};

// Dimensions of an array merged into the rows or columns of a matrix: the offset of each, in elements.
class Axis {
 public:
  Axis() = default;
  // In row-major order over `sizes`.
  Axis(std::span<const int64_t> sizes, std::span<const int64_t> strides);
  static Axis regular(int64_t extent, int64_t stride);

  int64_t extent() const { return extent_; }
  bool is_regular() const { return offsets_.empty(); }
  int64_t stride() const { return stride_; }  // of a regular one
  int64_t at(int64_t i) const { return offsets_.empty() ? i * stride_ : offsets_[static_cast<std::size_t>(i)]; }
  bool contiguous(int64_t first, int64_t count) const {
    return is_regular() ? stride_ == 1 || count == 1 : runs_[static_cast<std::size_t>(first)] >= count;
  }
  int64_t run(int64_t i) const {
    return runs_[static_cast<std::size_t>(i)];
  }  // of an irregular axis: length of the contiguous run from i on

 private:
  int64_t extent_ = 1, stride_ = 0;
  std::vector<int64_t> offsets_, runs_;  // runs: how many of the following entries are contiguous
};

// Packs rows [first, first + count) and k [k0, k0 + k) of an operand as consecutive panels of `width` rows:
// panel[k / together][row][k % together]. Absent rows and absent k (up to a multiple of `together`) are zeros.
template <class P>
using Pack = FunctionRef<void(int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, P* out)>;

// Called when a part of the result is complete: by the thread that finished it, while it is in its cache.
using Finish = FunctionRef<void(int64_t row, int64_t rows, int64_t column, int64_t columns)>;

// out[rows, columns] = left[rows, inner] * right[inner, columns].
template <class Kind>
struct Product {
  using P = typename Kind::Packed;
  int64_t inner;
  Pack<P> left, right;
  typename Kind::Sum* out;
  const Axis &rows, &columns;
  const Finish* finish = nullptr;
  Bfloat16Bits* bfloat16s = nullptr;  // destination of rounded sums, contiguous rows indexed as in `out`; AMX only
  // Operands that may be read in place, with this row stride: of contiguous k (AMX only) or contiguous columns.
  const P *left_in_place = nullptr, *right_in_place = nullptr;
  int64_t left_stride = 0, right_stride = 0;
  // Operands packed before by pack_left and pack_right for a matmul of these sizes: `left` and `right` are not called.
  const P *packed_left = nullptr, *packed_right = nullptr;

  void run() const;
  // Elements of a whole packed operand; 0 if these sizes are partitioned differently.
  int64_t packed_left_size() const;
  int64_t packed_right_size() const;
  void pack_left(P* to) const;
  void pack_right(P* to) const;
};

// Approximate nanoseconds that one core needs for this many multiply-adds.
template <class Kind>
double multiply_cost(double products) {
  using P = typename Kind::Packed;
  if (Kind::together > 1) return products * (sizeof(P) == 1 ? 0.004 : 0.008) / (Kind::together > 8 ? 5 : 1);
  return products * (sizeof(P) == 4 ? 0.028 : 0.056);
}

template <class T>
struct Matrix {  // in memory
  const T* data;
  const Axis &free, &inner;
};

// Matmuls not worth packing, of T or of narrower floats: vectors by matrices, and dots. False: neither.
template <class T, class Sum>
bool multiply_vector(const Matrix<T>& left, const Matrix<T>& right, Sum* out, const Axis& rows, const Axis& columns);

// A matmul of small matrices with contiguous rows; the operands of the next one may be passed for prefetching.
template <class T>
struct SmallProduct {
  int64_t m, inner, n;
  const T* left;
  int64_t left_step;
  const T* right;
  int64_t right_step;
  T* out;  // rows of n
  const T *next_left = nullptr, *next_right = nullptr;
};
// False: not supported (another processor, or n does not fill vectors).
template <class T>
bool multiply_unpacked(const SmallProduct<T>& product);

// Plain loops for a few elements.
template <class T>
void multiply_small(const Matrix<T>& left, const Matrix<T>& right, T* out, const Axis& rows, const Axis& columns);

// Many matmuls of tiny matrices, each [m, inner] * [inner, n] with all dimensions up to 4 and rows stored back to back;
// operands and results are these steps apart. False: not for these sizes.
template <class T>
bool multiply_tiny(int64_t batch, int64_t m, int64_t inner, int64_t n, const T* left, int64_t left_step, const T* right,
                   int64_t right_step, T* out);

}  // namespace capibara::cpu
