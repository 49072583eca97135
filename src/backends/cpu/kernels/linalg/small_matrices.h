// Batches of small matrices: vectorised cholesky, triangular solves and lu without LAPACK.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers small_matrix_makers();

namespace small_matrices {

inline constexpr int64_t max_order = 95;  // above, LAPACK's blocked algorithms are faster
inline constexpr int64_t max_alone = 3;   // systems with one right-hand side that are faster one by one than in lanes

inline int64_t padded_order(int64_t n) { return (n + 3) / 4 * 4; }
// Vectors from one row to the next; odd, since rows a power of two apart map to one cache set.
inline int64_t row_stride(int64_t n) { return n % 4 == 0 && n < 16 ? n : padded_order(n) | 1; }

// `used` matrices, at most one per lane of a vector; row-major, contiguous.
template <class R>
struct CholeskyGroup {
  int64_t order, used;
  const R* in;
  R* out;
  R* work;
};
// op(a) x = b or x op(a) = b; b has `others` columns or rows in addition to the order.
template <class R>
struct SolveGroup {
  int64_t order, others, used;
  bool left, lower, transpose, unit;
  const R *a, *b;
  R* out;
  R* work;
};
// Pivots: min(rows, cols) of each matrix.
template <class R>
struct LuGroup {
  int64_t rows, cols, used;
  const R* in;
  R* out;
  int* pivots;
  R* work;
};

template <class R>
struct Code {
  int64_t lanes;
  void (*cholesky)(const CholeskyGroup<R>&);
  void (*solve)(const SolveGroup<R>&);
  void (*solve_vector)(const SolveGroup<R>&);  // of one matrix, with a single right-hand side; needs no work
  void (*lu)(const LuGroup<R>&);
};
template <class R>
const Code<R>& code();

}  // namespace small_matrices

}  // namespace capibara::cpu
