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

// L of x = L adjoint(L): NaN where x is not positive definite. Without symmetrize_input only the lower triangle is read.
Array cholesky(const Array& x, bool symmetrize_input = true);
// R of A + w transpose(w), where A = transpose(r_matrix) r_matrix.
Array cholesky_update(const Array& r_matrix, const Array& w_vector);

struct EigOptions {
  bool compute_left_eigenvectors = true;
  bool compute_right_eigenvectors = true;
  bool enable_eigvec_derivs = false;  // valid for distinct eigenvalues and a single largest component per eigenvector
  std::optional<EigImplementation> implementation;
};
// Eigenvalues, then left and right eigenvectors as asked for; all complex.
Arrays eig(const Array& x, const EigOptions& options = {});

struct EighOptions {
  bool lower = true;  // the triangle that is read where the input is not symmetrized
  bool symmetrize_input = true;
  bool sort_eigenvalues = true;
  std::optional<IndexRange> subset_by_index;
  std::optional<EighImplementation> implementation;
};
// Eigenvectors v and ascending eigenvalues w of a symmetric or Hermitian matrix.
std::pair<Array, Array> eigh(const Array& x, const EighOptions& options = {});

// The Hessenberg form with Householder reflectors below it, and their factors.
std::pair<Array, Array> hessenberg(const Array& a);
Array householder_product(const Array& a, const Array& taus);
// lu, pivots and permutation of P x = L U.
std::tuple<Array, Array, Array> lu(const Array& x);
Array lu_pivots_to_permutation(const Array& pivots, int64_t permutation_size);
struct OrmqrOptions {
  bool left = true;
  bool transpose = false;
};
Array ormqr(const Array& a, const Array& taus, const Array& c, const OrmqrOptions& options = {});

// q and r of x = q r.
std::pair<Array, Array> qr(const Array& x, bool full_matrices = true);
// q, r and p of x[..., p] = q r with a non-increasing diagonal in r: qr(x, pivoting=True).
std::tuple<Array, Array, Array> qr_with_pivoting(const Array& x, bool full_matrices = true);

struct QdwhOptions {
  bool is_hermitian = false;
  std::optional<int64_t> max_iterations;
  std::optional<double> eps;
};
// The polar decomposition x = u h of a matrix with at least as many rows as columns, the iterations it took, and whether
// it converged.
std::tuple<Array, Array, Array, Array> qdwh(const Array& x, const QdwhOptions& options = {});

struct SchurOptions {
  bool compute_schur_vectors = true;
  bool sort_eig_vals = false;
};
// The Schur form, and the Schur vectors as asked for.
Arrays schur(const Array& x, const SchurOptions& options = {});

struct SvdOptions {
  bool full_matrices = true;
  std::optional<IndexRange> subset_by_index;
  std::optional<SvdAlgorithm> algorithm;
};
// u, s and v adjoint of x = u s vh.
std::tuple<Array, Array, Array> svd(const Array& x, const SvdOptions& options = {});
// s alone: svd(x, compute_uv=False).
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
Array triangular_solve(const Array& a, const Array& b, const TriangularSolveOptions& options = {});

// The reflectors, the diagonal, the diagonal beside it, and taus of a symmetric matrix made tridiagonal.
std::tuple<Array, Array, Array, Array> tridiagonal(const Array& a, bool lower = true);
// dl[0] and du[-1] are not used.
Array tridiagonal_solve(const Array& dl, const Array& d, const Array& du, const Array& b, bool perturb_singular = false);

}  // namespace capibara::jax::lax::linalg
