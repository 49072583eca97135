// jax.scipy.linalg: factorizations and solvers, functions of matrices, and structured matrices.
#pragma once

#include <capibara/lax.h>
#include <capibara/numpy/linalg.h>
#include <capibara/primitive.h>

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capibara::jax::scipy::linalg {

// ---- factorizations and solutions --------------------------------------------------------------------------------
// The Cholesky factor of positive definite matrices; only one triangle is read.
Array cholesky(const Array& a, bool lower = false);
// A Cholesky factor and whether it is the lower one, for cho_solve.
std::pair<Array, bool> cho_factor(const Array& a, bool lower = false);
// The solution x of a x = b, from the Cholesky factor of a.
Array cho_solve(const std::pair<Array, bool>& c_and_lower, const Array& b);
// Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices.
std::pair<Array, Array> eigh(const Array& a, bool lower = true);
// Both factors in one matrix and the pivots, for lu_solve.
std::pair<Array, Array> lu_factor(const Array& a);
// The solution x of a x = b, from the LU factors of a.
Array lu_solve(const std::pair<Array, Array>& lu_and_piv, const Array& b, int64_t trans = 0);
// The factors p, l and u of a = p l u.
std::tuple<Array, Array, Array> lu(const Array& a);
// The factors p l and u: lu(a, permute_l=True).
std::pair<Array, Array> lu_permuted(const Array& a);
struct QrOptions {
  std::string mode = "full";  // "economic", or "r" for r alone
  bool pivoting = false;
};
// The QR decomposition: full, economic or r. Returns q, r and the permutation as requested.
Arrays qr(const Array& a, const QrOptions& options = {});
struct QrMultiplyOptions {
  std::string mode = "right";  // c Q, or "left": Q c
  bool pivoting = false;
  bool conjugate = false;
};
// The product of c with the Q of a QR decomposition, and R. Returns the product, r and the permutation.
Arrays qr_multiply(const Array& a, const Array& c, const QrMultiplyOptions& options = {});
// The Schur form and its vectors. Returns T and Z.
Arrays schur(const Array& a, const std::string& output = "real");
// The complex Schur form of a real one.
std::pair<Array, Array> rsf2csf(const Array& T, const Array& Z);
// The Hessenberg form, and the unitary matrix that makes it.
Array hessenberg(const Array& a);
// The Hessenberg form and the unitary matrix that makes it: hessenberg(a, calc_q=True).
std::pair<Array, Array> hessenberg_with_q(const Array& a);
struct SolveOptions {
  bool lower = false;
  std::string assume_a = "gen";  // or sym, her, pos
};
// The solution x of a x = b, for general, symmetric, Hermitian or positive definite a.
Array solve(const Array& a, const Array& b, const SolveOptions& options = {});
struct SolveTriangularOptions {
  int64_t trans = 0;  // 0: a x = b, 1: the transposed, 2: the adjoint
  bool lower = false;
  bool unit_diagonal = false;
};
// The solution x of a x = b for triangular a.
Array solve_triangular(const Array& a, const Array& b, const SolveTriangularOptions& options = {});
struct SolveSylvesterOptions {
  std::string method = "schur";  // or eigen
  double tol = 1e-8;             // sums of eigenvalues closer to zero make the result NaN
};
// The solution X of A X + X B = C.
Array solve_sylvester(const Array& A, const Array& B, const Array& C, const SolveSylvesterOptions& options = {});
struct EighTridiagonalOptions {
  std::string select = "a";                                 // all, or "i": those in select_range
  std::optional<std::pair<int64_t, int64_t>> select_range;  // first and last, both included
  std::optional<Array> tol;
  std::optional<Array> key;  // of the random start of the eigenvectors
};
// The eigenvalues alone: eigh_tridiagonal(d, e, eigvals_only=True).
Array eigvalsh_tridiagonal(const Array& d, const Array& e, const EighTridiagonalOptions& options = {});
// Eigenvalues and eigenvectors of a symmetric tridiagonal matrix.
std::pair<Array, Array> eigh_tridiagonal(const Array& d, const Array& e, const EighTridiagonalOptions& options = {});

// ---- functions of matrices ---------------------------------------------------------------------------------------
struct ExpmOptions {
  bool upper_triangular = false;
  int64_t max_squarings = 16;  // a norm that needs more gives NaN
};
// The exponential of matrices.
Array expm(const Array& A, const ExpmOptions& options = {});
// The exponential of a matrix and its derivative in the direction E.
std::pair<Array, Array> expm_frechet(const Array& A, const Array& E);
// The square root of a matrix.
Array sqrtm(const Array& A);
using DiagonalFunction = std::function<Array(const Array& eigenvalues)>;
// A function of a matrix, given as a function of its eigenvalues. Also returns an estimate of the error.
std::pair<Array, Array> funm(const Array& A, const DiagonalFunction& func);
struct PolarOptions {
  std::string side = "right";
  std::string method = "qdwh";  // or svd
  std::optional<double> eps;
  std::optional<int64_t> max_iterations;
};
// The polar decomposition: a unitary and a positive factor.
std::pair<Array, Array> polar(const Array& a, const PolarOptions& options = {});

// ---- structured matrices ------------------------------------------------------------------------------------------
// A block diagonal matrix.
Array block_diag(const std::vector<Array>& arrs);
// The matrix with constant diagonals, by its first column and first row.
Array toeplitz(const Array& c, const std::optional<Array>& r = std::nullopt);
// The matrix with constant antidiagonals, by its first column and last row.
Array hankel(const Array& c, const std::optional<Array>& r = std::nullopt);
// The matrix whose columns are the rotations of the first.
Array circulant(const Array& c);
// The Leslie matrix of a population: fecundities in the first row, survival below the diagonal.
Array leslie(const Array& f, const Array& s);
// The companion matrix of a polynomial: its eigenvalues are the roots.
Array companion(const Array& a);
// The absolute differences of all pairs of entries.
Array fiedler(const Array& a);
// The pentadiagonal companion matrix of a polynomial.
Array fiedler_companion(const Array& a);
// The matrix whose product with a vector of length n is the convolution with a.
Array convolution_matrix(const Array& a, int64_t n, const std::string& mode = "full");
// The Hilbert matrix.
Array hilbert(int64_t n);
// The inverse of the Hilbert matrix.
Array invhilbert(int64_t n);
// The matrix of binomial coefficients. kind is "symmetric", "lower" or "upper".
Array pascal(int64_t n, const std::string& kind = "symmetric");
// The inverse of the Pascal matrix.
Array invpascal(int64_t n, const std::string& kind = "symmetric");
// The Helmert matrix.
Array helmert(int64_t n, bool full = false);
// The Hadamard matrix of a power of two.
Array hadamard(int64_t n, std::optional<DType> dtype = std::nullopt);
struct DftOptions {
  std::string scale;  // "", "sqrtn" or "n"
  std::optional<DType> dtype;
};
// The matrix of the discrete Fourier transform.
Array dft(int64_t n, const DftOptions& options = {});

using numpy::linalg::det;
using numpy::linalg::inv;

}  // namespace capibara::jax::scipy::linalg
