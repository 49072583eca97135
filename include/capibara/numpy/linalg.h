// jax.numpy.linalg: decompositions, solvers, norms and products of matrices in the last two dimensions.
#pragma once

#include <capibara/lax.h>
#include <capibara/numpy/axis.h>
#include <capibara/numpy/contraction.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace capibara::jax::numpy::linalg {

// ---- decompositions ----------------------------------------------------------------------------------------------
struct CholeskyOptions {
  bool upper = false;
  bool symmetrize_input = true;
};
// The Cholesky factor of positive definite matrices; NaN where a matrix is not.
Array cholesky(const Array& a, const CholeskyOptions& options = {});

struct EigResult {
  Array eigenvalues, eigenvectors;
};
// Eigenvalues and right eigenvectors of general matrices.
EigResult eig(const Array& a);
// Eigenvalues of general matrices.
Array eigvals(const Array& a);

struct EighOptions {
  std::string UPLO = "L";  // the triangle to read if the input is not symmetrized: L or U
  bool symmetrize_input = true;
};
struct EighResult {
  Array eigenvalues, eigenvectors;
};
// Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices.
EighResult eigh(const Array& a, const EighOptions& options = {});
// Ascending eigenvalues of symmetric or Hermitian matrices.
Array eigvalsh(const Array& a, const EighOptions& options = {});

struct QrResult {
  Array Q, R;
};
// The QR decomposition: reduced, complete, r or raw. mode is "reduced", "complete", or "raw": reflectors, transposed as
// in LAPACK, and their factors.
QrResult qr(const Array& a, const std::string& mode = "reduced");
// R of the QR decomposition: mode "r".
Array qr_r(const Array& a);

struct SvdOptions {
  bool full_matrices = true;
  bool hermitian = false;
  std::optional<std::pair<int64_t, int64_t>> subset_by_index;
};
struct SvdResult {
  Array U, S, Vh;
};
// The singular value decomposition.
SvdResult svd(const Array& a, const SvdOptions& options = {});
// The singular values alone: svd(a, compute_uv=False).
Array singular_values(const Array& a, const SvdOptions& options = {});
// The singular values, largest first.
Array svdvals(const Array& x);

// ---- solutions ---------------------------------------------------------------------------------------------------
// The solution x of a x = b. b is one vector, or [..., m, k].
Array solve(const Array& a, const Array& b);
// The inverse matrices.
Array inv(const Array& a);
struct PinvOptions {
  std::optional<Array> rtol;  // singular values up to rtol times the largest count as zero
  bool hermitian = false;
};
// The Moore-Penrose pseudo-inverse.
Array pinv(const Array& a, const PinvOptions& options = {});
struct LstsqOptions {
  std::optional<Array> rcond;
  bool numpy_resid = false;  // no residuals if the matrix is rank-deficient; requires concrete values
};
struct LstsqResult {
  Array x, residuals, rank, s;
};
// The least squares solution of a x = b, residuals, rank and singular values.
LstsqResult lstsq(const Array& a, const Array& b, const LstsqOptions& options = {});
// The inverse of a tensor as a map between its last and its first dimensions.
Array tensorinv(const Array& a, int64_t ind = 2);
// The solution x of tensordot(a, x) = b.
Array tensorsolve(const Array& a, const Array& b, const std::optional<Ints>& axes = std::nullopt);

// ---- numbers of a matrix -----------------------------------------------------------------------------------------
// The determinant.
Array det(const Array& a);
struct SlogdetResult {
  Array sign, logabsdet;
};
// The sign of the determinant and the logarithm of its absolute value. method is "lu" or "qr".
SlogdetResult slogdet(const Array& a, const std::string& method = "lu");

// A number, or the name of a matrix norm: "fro", "nuc".
class NormOrder {
 public:
  NormOrder() = default;  // 2 for vectors, the Frobenius norm for matrices
  template <class T>
  requires std::is_arithmetic_v<T> NormOrder(T order) : order_(static_cast<double>(order)) {}
  NormOrder(const char* name) : order_(std::string(name)) {}
  NormOrder(std::string name) : order_(std::move(name)) {}

  bool absent() const { return std::holds_alternative<std::monostate>(order_); }
  bool is(double number) const { return std::holds_alternative<double>(order_) && std::get<double>(order_) == number; }
  const double* number() const { return std::get_if<double>(&order_); }
  const std::string* name() const { return std::get_if<std::string>(&order_); }

 private:
  std::variant<std::monostate, double, std::string> order_;
};
struct NormOptions {
  NormOrder ord;
  Axis axis;
  bool keepdims = false;
};
// The norm of vectors along one axis, or of matrices along two.
Array norm(const Array& x, const NormOptions& options = {});
struct VectorNormOptions {
  Axis axis;
  bool keepdims = false;
  NormOrder ord = 2;
};
// The norm of vectors along some axes, by default of all elements.
Array vector_norm(const Array& x, const VectorNormOptions& options = {});
struct MatrixNormOptions {
  bool keepdims = false;
  NormOrder ord = "fro";
};
// The norm of the matrices in the last two dimensions.
Array matrix_norm(const Array& x, const MatrixNormOptions& options = {});
// The condition number in one of the norms.
Array cond(const Array& x, const NormOrder& p = {});
struct MatrixRankOptions {
  std::optional<Array> rtol;
  bool hermitian = false;
};
// The number of singular values above a tolerance.
Array matrix_rank(const Array& M, const MatrixRankOptions& options = {});
struct MatrixTraceOptions {
  int64_t offset = 0;
  std::optional<DType> dtype;
};
// The sum of a diagonal of the matrices in the last two dimensions.
Array trace(const Array& x, const MatrixTraceOptions& options = {});

// ---- products ----------------------------------------------------------------------------------------------------
// The nth power of a square matrix, of its inverse for negative n.
Array matrix_power(const Array& a, int64_t n);
// The product of several matrices in the cheapest order.
Array multi_dot(const std::vector<Array>& arrays, const std::string& precision = "");
// The cross product of vectors with three components.
Array cross(const Array& x1, const Array& x2, int64_t axis = -1);
// The outer product of two vectors.
Array outer(const Array& x1, const Array& x2);
// The array with its last two dimensions exchanged.
Array matrix_transpose(const Array& x);
// A diagonal of the matrices in the last two dimensions.
Array diagonal(const Array& x, int64_t offset = 0);
using numpy::matmul;
using numpy::tensordot;
using numpy::vecdot;

}  // namespace capibara::jax::numpy::linalg
