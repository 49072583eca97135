// Batches of small matrices: vectorised qr with its Householder steps, eigh and svd without LAPACK.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers small_spectrum_makers();

namespace small_matrices {

inline constexpr int64_t max_spectrum_order = 64;

// Vectors from one column to the next; odd, since columns a power of two apart map to one cache set.
inline int64_t column_stride(int64_t rows) { return rows | 1; }

// `used` matrices, at most one per lane of a vector; row-major, contiguous. Null outputs are
// not computed.
template <class R>
struct QrGroup {
  int64_t rows, cols, q_cols, r_rows, used;
  const R* in;
  R *q, *r;          // rows x q_cols and r_rows x cols, or
  R *packed, *taus;  // R with the reflectors below it, as in LAPACK's geqrf
  R* work;
  static int64_t work_size(int64_t rows, int64_t cols, int64_t q_cols) {
    const int64_t most = rows * (cols > q_cols ? cols : q_cols);
    return most + column_stride(rows) * (cols + q_cols) + 2 * cols;
  }
};
// The first `cols` columns of the product of reflectors.
template <class R>
struct ReflectorGroup {
  int64_t rows, cols, reflectors, used;
  const R *packed, *taus;
  R *q, *work;
};
// Reads the lower triangle.
template <class R>
struct EighGroup {
  int64_t order, used;
  const R* in;
  R *vectors, *values, *work;
  static int64_t work_size(int64_t n) { return 2 * n * column_stride(n) + (n + 3) / 4 * 4 * n + 5 * n; }
};

// `count` columns of `size` numbers: those of a tall matrix, or the rows of a wide one; count <= size. If `left_out`
// is set, nothing was written.
template <class R>
struct SvdGroup {
  int64_t size, count, used;
  bool tall, vectors;
  const R* in;
  R *values, *u, *vt;
  bool* left_out;
  R* work;
  static int64_t work_size(int64_t size, int64_t count) { return 2 * size * count + count * count + count; }
};

template <class R>
struct QrCode {
  int64_t lanes;
  void (*qr)(const QrGroup<R>&);
  void (*multiply)(const ReflectorGroup<R>&);
};
template <class R>
const QrCode<R>& qr_code();

template <class R>
struct EighCode {
  int64_t lanes;
  void (*eigh)(const EighGroup<R>&);
};
template <class R>
const EighCode<R>& eigh_code();

template <class R>
struct SvdCode {
  int64_t lanes;
  void (*svd)(const SvdGroup<R>&);
};
template <class R>
const SvdCode<R>& svd_code();

}  // namespace small_matrices

}  // namespace capibara::cpu
