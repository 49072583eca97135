// jax.lax.linalg: decompositions and solves of matrices, the trailing two dimensions of their operands.
#pragma once

#include <capibara/lax.h>

#include <optional>
#include <tuple>
#include <utility>

namespace capibara::jax::lax::linalg {

enum class EigImplementation { cusolver, magma, lapack };
enum class EighImplementation { qr, jacobi, qdwh };
enum class SvdAlgorithm { default_, qr, jacobi, polar, divide_and_conquer };
using IndexRange = std::pair<int64_t, int64_t>;  // first, one past the last

// The lower Cholesky factor of positive definite matrices; NaN where a matrix is not. x = L adjoint(L); without
// symmetrize_input only the lower triangle is read.
Array cholesky(const Array& x, bool symmetrize_input = true);
// The upper Cholesky factor after a rank-one update.
// R of A + w transpose(w), where A = transpose(r_matrix) r_matrix.
Array cholesky_update(const Array& r_matrix, const Array& w_vector);

struct EigOptions {
  bool compute_left_eigenvectors = true;
  bool compute_right_eigenvectors = true;
  bool enable_eigvec_derivs = false;  // valid for distinct eigenvalues and a single largest component per eigenvector
  std::optional<EigImplementation> implementation;
};
// Eigenvalues of general matrices, and their left and right eigenvectors as requested. All are complex.
Arrays eig(const Array& x, const EigOptions& options = {});

struct EighOptions {
  bool lower = true;  // the triangle that is read where the input is not symmetrized
  bool symmetrize_input = true;
  bool sort_eigenvalues = true;
  std::optional<IndexRange> subset_by_index;
  std::optional<EighImplementation> implementation;
};
// Eigenvectors and ascending eigenvalues of symmetric or Hermitian matrices.
std::pair<Array, Array> eigh(const Array& x, const EighOptions& options = {});

// The Hessenberg form with Householder reflectors below it, and their factors.
std::pair<Array, Array> hessenberg(const Array& a);
// The product of elementary Householder reflectors.
Array householder_product(const Array& a, const Array& taus);
// The LU factors in one matrix, the pivots, and the permutation of the rows. P x = L U.
std::tuple<Array, Array, Array> lu(const Array& x);
// The permutation that a sequence of row exchanges amounts to.
Array lu_pivots_to_permutation(const Array& pivots, int64_t permutation_size);
struct OrmqrOptions {
  bool left = true;
  bool transpose = false;
};
// The product of the Q of a QR decomposition, given by reflectors, with a matrix.
Array ormqr(const Array& a, const Array& taus, const Array& c, const OrmqrOptions& options = {});

// The QR decomposition; with pivoting also the permutation of the columns. x = q r.
std::pair<Array, Array> qr(const Array& x, bool full_matrices = true);
// The QR decomposition x[..., p] = q r with a non-increasing diagonal in r: qr(x, pivoting=True).
std::tuple<Array, Array, Array> qr_with_pivoting(const Array& x, bool full_matrices = true);

struct QdwhOptions {
  bool is_hermitian = false;
  std::optional<int64_t> max_iterations;
  std::optional<double> eps;
};
// The polar decomposition by Halley iterations, their number, and whether they converged. x = u h, with at least as
// many rows as columns.
std::tuple<Array, Array, Array, Array> qdwh(const Array& x, const QdwhOptions& options = {});

struct SchurOptions {
  bool compute_schur_vectors = true;
  bool sort_eig_vals = false;
};
// The Schur form, and the Schur vectors as requested.
Arrays schur(const Array& x, const SchurOptions& options = {});

struct SvdOptions {
  bool full_matrices = true;
  std::optional<IndexRange> subset_by_index;
  std::optional<SvdAlgorithm> algorithm;
};
// The singular value decomposition u, s, vh. x = u s vh.
std::tuple<Array, Array, Array> svd(const Array& x, const SvdOptions& options = {});
// The singular values alone: svd(x, compute_uv=False).
Array singular_values(const Array& x, const SvdOptions& options = {});

struct SymmetricProductOptions {
  double alpha = 1, beta = 0;
  bool symmetrize_output = false;
};
// alpha a transpose(a) + beta c.
Array symmetric_product(const Array& a_matrix, const Array& c_matrix, const SymmetricProductOptions& options = {});

struct TriangularSolveOptions {
  bool left_side = false;  // op(a) x = b instead of x op(a) = b
  bool lower = false;
  bool transpose_a = false;
  bool conjugate_a = false;
  bool unit_diagonal = false;
};
// The solution x of op(a) x = b or x op(a) = b for triangular a.
Array triangular_solve(const Array& a, const Array& b, const TriangularSolveOptions& options = {});

// A symmetric or Hermitian matrix reduced to tridiagonal form. Returns the reflectors, the diagonal, the off-diagonal,
// and taus.
std::tuple<Array, Array, Array, Array> tridiagonal(const Array& a, bool lower = true);
// The solution x of a x = b for a tridiagonal matrix a, given by its three diagonals.
// dl[0] and du[-1] are not used.
Array tridiagonal_solve(const Array& dl, const Array& d, const Array& du, const Array& b,
                        bool perturb_singular = false);

}  // namespace capibara::jax::lax::linalg
