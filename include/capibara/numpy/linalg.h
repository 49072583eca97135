// jax.numpy.linalg: decompositions, solutions, norms and products of matrices in the last two dimensions.
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
Array cholesky(const Array& a, const CholeskyOptions& options = {});

struct EigResult {
  Array eigenvalues, eigenvectors;
};
EigResult eig(const Array& a);
Array eigvals(const Array& a);

struct EighOptions {
  std::string UPLO = "L";  // the triangle that is read where the input is not symmetrized: L or U
  bool symmetrize_input = true;
};
struct EighResult {
  Array eigenvalues, eigenvectors;
};
EighResult eigh(const Array& a, const EighOptions& options = {});
Array eigvalsh(const Array& a, const EighOptions& options = {});

struct QrResult {
  Array Q, R;
};
// "reduced", "complete", or "raw": reflectors, transposed as in LAPACK, and their factors.
QrResult qr(const Array& a, const std::string& mode = "reduced");
Array qr_r(const Array& a);  // mode "r"

struct SvdOptions {
  bool full_matrices = true;
  bool hermitian = false;
  std::optional<std::pair<int64_t, int64_t>> subset_by_index;
};
struct SvdResult {
  Array U, S, Vh;
};
SvdResult svd(const Array& a, const SvdOptions& options = {});
Array singular_values(const Array& a, const SvdOptions& options = {});  // svd(a, compute_uv=False)
Array svdvals(const Array& x);

// ---- solutions ---------------------------------------------------------------------------------------------------
Array solve(const Array& a, const Array& b);  // b is one vector, or [..., m, k]
Array inv(const Array& a);
struct PinvOptions {
  std::optional<Array> rtol;  // singular values up to rtol times the largest count as zero
  bool hermitian = false;
};
Array pinv(const Array& a, const PinvOptions& options = {});
struct LstsqOptions {
  std::optional<Array> rcond;
  bool numpy_resid = false;  // no residuals where the rank is deficient; needs concrete values
};
struct LstsqResult {
  Array x, residuals, rank, s;
};
LstsqResult lstsq(const Array& a, const Array& b, const LstsqOptions& options = {});
Array tensorinv(const Array& a, int64_t ind = 2);
Array tensorsolve(const Array& a, const Array& b, const std::optional<Ints>& axes = std::nullopt);

// ---- numbers of a matrix -----------------------------------------------------------------------------------------
Array det(const Array& a);
struct SlogdetResult {
  Array sign, logabsdet;
};
SlogdetResult slogdet(const Array& a, const std::string& method = "lu");  // or "qr"

// A number, or the name of a matrix norm: "fro", "nuc".
class NormOrder {
 public:
  NormOrder() = default;  // 2 for vectors, the Frobenius norm for matrices
  template <class T>
    requires std::is_arithmetic_v<T>
  NormOrder(T order) : order_(static_cast<double>(order)) {}
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
Array norm(const Array& x, const NormOptions& options = {});
struct VectorNormOptions {
  Axis axis;
  bool keepdims = false;
  NormOrder ord = 2;
};
Array vector_norm(const Array& x, const VectorNormOptions& options = {});
struct MatrixNormOptions {
  bool keepdims = false;
  NormOrder ord = "fro";
};
Array matrix_norm(const Array& x, const MatrixNormOptions& options = {});
Array cond(const Array& x, const NormOrder& p = {});
struct MatrixRankOptions {
  std::optional<Array> rtol;
  bool hermitian = false;
};
Array matrix_rank(const Array& M, const MatrixRankOptions& options = {});
struct MatrixTraceOptions {
  int64_t offset = 0;
  std::optional<DType> dtype;
};
Array trace(const Array& x, const MatrixTraceOptions& options = {});

// ---- products ----------------------------------------------------------------------------------------------------
Array matrix_power(const Array& a, int64_t n);
Array multi_dot(const std::vector<Array>& arrays, const std::string& precision = "");
Array cross(const Array& x1, const Array& x2, int64_t axis = -1);  // of vectors with three components
Array outer(const Array& x1, const Array& x2);
Array matrix_transpose(const Array& x);
Array diagonal(const Array& x, int64_t offset = 0);
using numpy::matmul;
using numpy::tensordot;
using numpy::vecdot;

}  // namespace capibara::jax::numpy::linalg
