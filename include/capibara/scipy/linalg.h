// jax.scipy.linalg: factorizations and solutions, functions of matrices, and matrices of special form.
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
// Only the triangle that is asked for is read.
Array cholesky(const Array& a, bool lower = false);
std::pair<Array, bool> cho_factor(const Array& a, bool lower = false);
Array cho_solve(const std::pair<Array, bool>& c_and_lower, const Array& b);
std::pair<Array, Array> eigh(const Array& a, bool lower = true);  // eigenvalues, eigenvectors
std::pair<Array, Array> lu_factor(const Array& a);                // both factors in one matrix, and the pivots
Array lu_solve(const std::pair<Array, Array>& lu_and_piv, const Array& b, int64_t trans = 0);
std::tuple<Array, Array, Array> lu(const Array& a);       // a = p l u
std::pair<Array, Array> lu_permuted(const Array& a);      // p l and u: lu(a, permute_l=True)
struct QrOptions {
  std::string mode = "full";  // "economic", or "r" for r alone
  bool pivoting = false;
};
Arrays qr(const Array& a, const QrOptions& options = {});  // q, r and the permutation, as asked for
struct QrMultiplyOptions {
  std::string mode = "right";  // c Q, or "left": Q c
  bool pivoting = false;
  bool conjugate = false;
};
Arrays qr_multiply(const Array& a, const Array& c, const QrMultiplyOptions& options = {});  // product, r, permutation
Arrays schur(const Array& a, const std::string& output = "real");                         // T and Z
std::pair<Array, Array> rsf2csf(const Array& T, const Array& Z);
Array hessenberg(const Array& a);
std::pair<Array, Array> hessenberg_with_q(const Array& a);
struct SolveOptions {
  bool lower = false;
  std::string assume_a = "gen";  // or sym, her, pos
};
Array solve(const Array& a, const Array& b, const SolveOptions& options = {});
struct SolveTriangularOptions {
  int64_t trans = 0;  // 0: a x = b, 1: the transposed, 2: the adjoint
  bool lower = false;
  bool unit_diagonal = false;
};
Array solve_triangular(const Array& a, const Array& b, const SolveTriangularOptions& options = {});
struct SolveSylvesterOptions {
  std::string method = "schur";  // or eigen
  double tol = 1e-8;             // sums of eigenvalues closer to zero make the result NaN
};
Array solve_sylvester(const Array& A, const Array& B, const Array& C, const SolveSylvesterOptions& options = {});
struct EighTridiagonalOptions {
  std::string select = "a";                                  // all, or "i": those in select_range
  std::optional<std::pair<int64_t, int64_t>> select_range;  // first and last, both included
  std::optional<Array> tol;
  std::optional<Array> key;  // of the random start of the eigenvectors
};
Array eigvalsh_tridiagonal(const Array& d, const Array& e, const EighTridiagonalOptions& options = {});
std::pair<Array, Array> eigh_tridiagonal(const Array& d, const Array& e, const EighTridiagonalOptions& options = {});

// ---- functions of matrices ---------------------------------------------------------------------------------------
struct ExpmOptions {
  bool upper_triangular = false;
  int64_t max_squarings = 16;  // a norm that needs more gives NaN
};
Array expm(const Array& A, const ExpmOptions& options = {});
std::pair<Array, Array> expm_frechet(const Array& A, const Array& E);  // expm(A) and its derivative along E
Array sqrtm(const Array& A);
using DiagonalFunction = std::function<Array(const Array& eigenvalues)>;
std::pair<Array, Array> funm(const Array& A, const DiagonalFunction& func);  // and an estimate of the error
struct PolarOptions {
  std::string side = "right";
  std::string method = "qdwh";  // or svd
  std::optional<double> eps;
  std::optional<int64_t> max_iterations;
};
std::pair<Array, Array> polar(const Array& a, const PolarOptions& options = {});

// ---- matrices of special form ------------------------------------------------------------------------------------
Array block_diag(const std::vector<Array>& arrs);
Array toeplitz(const Array& c, const std::optional<Array>& r = std::nullopt);  // first column and first row
Array hankel(const Array& c, const std::optional<Array>& r = std::nullopt);    // first column and last row
Array circulant(const Array& c);
Array leslie(const Array& f, const Array& s);
Array companion(const Array& a);
Array fiedler(const Array& a);
Array fiedler_companion(const Array& a);
Array convolution_matrix(const Array& a, int64_t n, const std::string& mode = "full");
Array hilbert(int64_t n);
Array invhilbert(int64_t n);
Array pascal(int64_t n, const std::string& kind = "symmetric");  // or lower, upper
Array invpascal(int64_t n, const std::string& kind = "symmetric");
Array helmert(int64_t n, bool full = false);
Array hadamard(int64_t n, std::optional<DType> dtype = std::nullopt);
struct DftOptions {
  std::string scale;  // "", "sqrtn" or "n"
  std::optional<DType> dtype;
};
Array dft(int64_t n, const DftOptions& options = {});

using numpy::linalg::det;
using numpy::linalg::inv;

}  // namespace capibara::jax::scipy::linalg
