// Linear algebra in plain loops: cholesky, lu, triangular and tridiagonal solves. Large matrices go to LAPACK if the
// module is available; small ones never open it.
#include "backends/reference/linalg_batch.h"
#include "backends/reference/linalg_module.h"
#include "lax/math/denormals.h"

#include <algorithm>
#include <cmath>

namespace capibara::reference {

namespace {

constexpr int64_t worth_lapack = 96;  // rows from which LAPACK's blocking pays off

template <class T>
const lapack::Routines<T>* large_routines(int64_t order) {
  if (order < worth_lapack || order > std::numeric_limits<int>::max()) return nullptr;
  const lapack::Table* table = find_lapack();
  return table ? &routines_of<T>(*table) : nullptr;
}

// ---- cholesky ---------------------------------------------------------------------------------------------------

// Row-major, in place: the lower triangle becomes L, the upper zero. False if the matrix is not positive definite.
template <class T>
bool factor_cholesky(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T* row = a + i * n;
    for (int64_t j = 0; j <= i; ++j) {
      const T* other = a + j * n;
      T sum = j == i ? T(std::real(row[j])) : row[j];
      for (int64_t k = 0; k < j; ++k) sum -= row[k] * conjugate(other[k]);
      if (j < i) {
        row[j] = sum / other[j];
      } else {
        auto diagonal = std::real(sum);
        if (!(diagonal > 0)) return false;
        row[i] = T(std::sqrt(diagonal));
      }
    }
    std::fill(row + i + 1, row + n, T(0));
  }
  return true;
}

template <class T>
bool factor_large_cholesky(const lapack::Routines<T>& routines, T* a, int64_t n) {
  // The row-major lower triangle is the column-major upper one: U is L transposed, for the conjugated matrix.
  for (int64_t i = 0; i < n * n; ++i) a[i] = conjugate(a[i]);
  if (routines.potrf('U', static_cast<int>(n), a) != 0) return false;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) a[i * n + j] = j <= i ? conjugate(a[i * n + j]) : T(0);
  }
  return true;
}

Arrays run_cholesky(const KernelArgs& args) {
  const math::FlushDenormals flush;
  const ArrayType& type = args.output_types[0];
  MatrixBatch batch(type.shape);
  return visit_inexact("cholesky", type.dtype, [&]<class T>(Type<T>) {
    Elements<T> values = load_all<T>(type.dtype, args.inputs[0].raw_data(), type.size());
    const lapack::Routines<T>* routines = large_routines<T>(batch.rows);
    for (int64_t i = 0; i < batch.count; ++i) {
      T* a = values.data() + i * batch.size();
      bool ok = routines ? factor_large_cholesky(*routines, a, batch.rows) : factor_cholesky(a, batch.rows);
      if (!ok) std::fill(a, a + batch.size(), not_a_number<T>());
    }
    Output out = allocate(type);
    store_all(type.dtype, out.data, values);
    return Arrays{out.array};
  });
}

// ---- lu ---------------------------------------------------------------------------------------------------------

template <class T>
auto pivot_size(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return std::abs(x);
  else
    return std::abs(x.real()) + std::abs(x.imag());
}

// Row-major, in place, with partial pivoting; a zero pivot leaves its column unchanged.
template <class T>
void factor_lu(T* a, int64_t rows, int64_t cols, int* pivots) {
  for (int64_t k = 0; k < std::min(rows, cols); ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < rows; ++i) {
      if (pivot_size(a[i * cols + k]) > pivot_size(a[best * cols + k])) best = i;
    }
    pivots[k] = static_cast<int>(best);
    if (best != k) std::swap_ranges(a + k * cols, a + (k + 1) * cols, a + best * cols);
    const T* pivot_row = a + k * cols;
    if (pivot_row[k] == T(0)) continue;
    for (int64_t i = k + 1; i < rows; ++i) {
      T* row = a + i * cols;
      T factor = row[k] / pivot_row[k];
      row[k] = factor;
      for (int64_t j = k + 1; j < cols; ++j) row[j] -= factor * pivot_row[j];
    }
  }
}

void fill_permutation(const int* pivots, int64_t count, int* permutation, int64_t size) {
  for (int64_t i = 0; i < size; ++i) permutation[i] = static_cast<int>(i);
  for (int64_t i = 0; i < count; ++i) {
    if (pivots[i] >= 0 && pivots[i] < size) std::swap(permutation[i], permutation[pivots[i]]);
  }
}

Arrays run_lu(const KernelArgs& args) {
  const math::FlushDenormals flush;
  const ArrayType& type = args.output_types[0];
  MatrixBatch batch(type.shape);
  int64_t count = std::min(batch.rows, batch.cols);
  return visit_inexact("lu", type.dtype, [&]<class T>(Type<T>) {
    Elements<T> values = load_all<T>(type.dtype, args.inputs[0].raw_data(), type.size());
    Output out = allocate(type), pivots = allocate(args.output_types[1]), permutation = allocate(args.output_types[2]);
    const lapack::Routines<T>* routines = large_routines<T>(count);
    std::vector<T> scratch(routines ? static_cast<std::size_t>(batch.size()) : 0);
    for (int64_t i = 0; i < batch.count; ++i) {
      T* a = values.data() + i * batch.size();
      int* own = reinterpret_cast<int*>(pivots.data) + i * count;
      if (routines) {
        transpose_matrix(a, batch.rows, batch.cols, scratch.data());
        routines->getrf(static_cast<int>(batch.rows), static_cast<int>(batch.cols), scratch.data(), own);
        transpose_matrix(scratch.data(), batch.cols, batch.rows, a);
        for (int64_t k = 0; k < count; ++k) --own[k];
      } else {
        factor_lu(a, batch.rows, batch.cols, own);
      }
      fill_permutation(own, count, reinterpret_cast<int*>(permutation.data) + i * batch.rows, batch.rows);
    }
    store_all(type.dtype, out.data, values);
    return Arrays{out.array, pivots.array, permutation.array};
  });
}

Arrays run_permutation(const KernelArgs& args) {
  const ArrayType& type = args.output_types[0];
  int64_t size = type.shape.back(), count = args.inputs[0].shape().back();
  Output out = allocate(type);
  const int* pivots = reinterpret_cast<const int*>(args.inputs[0].raw_data());
  for (int64_t i = 0; i < vector_count(type.shape); ++i) {
    fill_permutation(pivots + i * count, count, reinterpret_cast<int*>(out.data) + i * size, size);
  }
  return {out.array};
}

// ---- triangular_solve -------------------------------------------------------------------------------------------

struct Triangle {
  bool left, lower, transpose, conjugate, unit;
};

// op(A) as a dense row-major matrix whose other triangle is not read; returns true if it is lower.
template <class T>
bool apply_transpose(const Triangle& form, const T* a, int64_t n, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T value = form.transpose ? a[j * n + i] : a[i * n + j];
      out[i * n + j] = form.conjugate ? conjugate(value) : value;
    }
  }
  return form.lower != form.transpose;
}

// op(A) X = B, row by row: b is n x cols.
template <class T>
void solve_left(const T* a, bool lower, bool unit, int64_t n, T* b, int64_t cols) {
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = lower ? step : n - 1 - step;
    T* row = b + i * cols;
    for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) {
      T factor = a[i * n + k];
      for (int64_t j = 0; j < cols; ++j) row[j] -= factor * b[k * cols + j];
    }
    if (unit) continue;
    for (int64_t j = 0; j < cols; ++j) row[j] /= a[i * n + i];
  }
}

// X op(A) = B for each row of B.
template <class T>
void solve_right(const T* a, bool lower, bool unit, int64_t n, T* b, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    T* row = b + r * n;
    for (int64_t step = 0; step < n; ++step) {
      int64_t i = lower ? n - 1 - step : step;
      if (!unit) row[i] /= a[i * n + i];
      T x = row[i];
      for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) row[k] -= x * a[i * n + k];
    }
  }
}

Arrays run_triangular_solve(const KernelArgs& args) {
  const math::FlushDenormals flush;
  const ArrayType& type = args.output_types[0];
  MatrixBatch batch(type.shape);
  const Attrs& attrs = args.attrs;
  Triangle form = {attrs.boolean("left_side"), attrs.boolean("lower"), attrs.boolean("transpose_a"),
                   attrs.boolean("conjugate_a"), attrs.boolean("unit_diagonal")};
  int64_t n = form.left ? batch.rows : batch.cols;
  return visit_inexact("triangular_solve", type.dtype, [&]<class T>(Type<T>) {
    auto a = read_all<T>(type.dtype, args.inputs[0].raw_data(), args.inputs[0].size());
    Elements<T> values = load_all<T>(type.dtype, args.inputs[1].raw_data(), type.size());
    const lapack::Routines<T>* routines = large_routines<T>(std::min(batch.rows, batch.cols));
    std::vector<T> own(static_cast<std::size_t>(n * n));
    for (int64_t i = 0; i < batch.count; ++i) {
      T* b = values.data() + i * batch.size();
      bool lower = apply_transpose(form, a.data() + i * n * n, n, own.data());
      if (routines) {
        // Read as column-major everything is transposed: X' op(A)' = B' with the sides exchanged.
        routines->trsm(form.left ? 'R' : 'L', lower ? 'U' : 'L', 'N', form.unit ? 'U' : 'N',
                       static_cast<int>(batch.cols), static_cast<int>(batch.rows), own.data(), b);
      } else if (form.left) {
        solve_left(own.data(), lower, form.unit, n, b, batch.cols);
      } else {
        solve_right(own.data(), lower, form.unit, n, b, batch.rows);
      }
    }
    Output out = allocate(type);
    store_all(type.dtype, out.data, values);
    return Arrays{out.array};
  });
}

// ---- tridiagonal_solve ------------------------------------------------------------------------------------------

// Gaussian elimination with row exchanges on three diagonals and a fourth for fill-in. A pivot below
// `least` is replaced by it; if `least` is negative a zero pivot is a failure.
template <class T, class Real>
bool solve_tridiagonal(const T* below, const T* on, const T* above, int64_t n, T* b, int64_t cols, Real least) {
  std::vector<T> lower(below, below + n), diagonal(on, on + n), upper(above, above + n),
      second(static_cast<std::size_t>(n));
  auto at = [](std::vector<T>& v, int64_t i) -> T& { return v[static_cast<std::size_t>(i)]; };
  auto usable = [&](T& pivot) {
    if (least >= 0 && !(std::abs(pivot) >= least)) pivot = std::real(pivot) < 0 ? T(-least) : T(least);
    return pivot != T(0);
  };
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (pivot_size(at(diagonal, i)) < pivot_size(at(lower, i + 1))) {
      std::swap(at(diagonal, i), at(lower, i + 1));
      std::swap(at(upper, i), at(diagonal, i + 1));
      if (i + 2 < n) std::swap(at(second, i), at(upper, i + 1));
      std::swap_ranges(b + i * cols, b + (i + 1) * cols, b + (i + 1) * cols);
    }
    if (!usable(at(diagonal, i))) return false;
    T factor = at(lower, i + 1) / at(diagonal, i);
    at(diagonal, i + 1) -= factor * at(upper, i);
    if (i + 2 < n) at(upper, i + 1) -= factor * at(second, i);
    for (int64_t j = 0; j < cols; ++j) b[(i + 1) * cols + j] -= factor * b[i * cols + j];
  }
  if (n > 0 && !usable(at(diagonal, n - 1))) return false;
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t j = 0; j < cols; ++j) {
      T sum = b[i * cols + j];
      if (i + 1 < n) sum -= at(upper, i) * b[(i + 1) * cols + j];
      if (i + 2 < n) sum -= at(second, i) * b[(i + 2) * cols + j];
      b[i * cols + j] = sum / at(diagonal, i);
    }
  }
  return true;
}

Arrays run_tridiagonal_solve(const KernelArgs& args) {
  const math::FlushDenormals flush;
  const ArrayType& type = args.output_types[0];
  MatrixBatch batch(type.shape);
  int64_t n = batch.rows;
  bool perturb = args.attrs.boolean("perturb_singular");
  return visit_inexact("tridiagonal_solve", type.dtype, [&]<class T>(Type<T>) {
    using Real = lapack::Real<T>;
    auto read = [&](std::size_t i) {
      return read_all<T>(type.dtype, args.inputs[i].raw_data(), args.inputs[i].size());
    };
    auto below = read(0), on = read(1), above = read(2);
    Elements<T> values = load_all<T>(type.dtype, args.inputs[3].raw_data(), type.size());
    for (int64_t i = 0; i < batch.count; ++i) {
      Real least = -1;
      if (perturb) {
        Real norm = 0;
        for (int64_t k = i * n; k < (i + 1) * n; ++k) {
          norm = std::max(norm, std::abs(on[k]));
          if (k > i * n) norm = std::max(norm, std::abs(below[k]));
          if (k + 1 < (i + 1) * n) norm = std::max(norm, std::abs(above[k]));
        }
        least = std::max(norm * std::numeric_limits<Real>::epsilon(), std::numeric_limits<Real>::min());
      }
      T* b = values.data() + i * batch.size();
      if (!solve_tridiagonal(below.data() + i * n, on.data() + i * n, above.data() + i * n, n, b, batch.cols, least)) {
        std::fill(b, b + batch.size(), not_a_number<T>());
      }
    }
    Output out = allocate(type);
    store_all(type.dtype, out.data, values);
    return Arrays{out.array};
  });
}

}  // namespace

KernelList plain_linalg_kernels() {
  return {{"cholesky", run_cholesky},
          {"lu", run_lu},
          {"lu_pivots_to_permutation", run_permutation},
          {"triangular_solve", run_triangular_solve},
          {"tridiagonal_solve", run_tridiagonal_solve}};
}

KernelList linalg_kernels() {
  KernelList kernels = plain_linalg_kernels();
  for (const KernelEntry& entry : lapack_linalg_kernels()) kernels.push_back(entry);
  return kernels;
}

}  // namespace capibara::reference
