"""Types of capibara.jax.lax.linalg. Made by tools/python/make_stubs.py."""
from typing import Any

class EigImplementation(Any): ...
class EighImplementation(Any): ...
class SvdAlgorithm(Any): ...
def cholesky(x: Any, *, symmetrize_input: Any = ...) -> Any:
    """The lower Cholesky factor of positive definite matrices; NaN where a matrix is not."""
cholesky_p: Any
def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper Cholesky factor after a rank-one update."""
cholesky_update_p: Any
def eig(x: Any, *, compute_left_eigenvectors: Any = ..., compute_right_eigenvectors: Any = ..., enable_eigvec_derivs: Any = ..., implementation: Any = ..., use_magma: Any = ...) -> Any:
    """Eigenvalues of general matrices, and their left and right eigenvectors as requested."""
eig_p: Any
def eigh(x: Any, *, lower: Any = ..., symmetrize_input: Any = ..., sort_eigenvalues: Any = ..., subset_by_index: Any = ..., implementation: Any = ...) -> Any:
    """Eigenvectors and ascending eigenvalues of symmetric or Hermitian matrices."""
eigh_p: Any
def hessenberg(a: Any) -> Any:
    """The Hessenberg form with Householder reflectors below it, and their factors."""
hessenberg_p: Any
def householder_product(a: Any, taus: Any) -> Any:
    """The product of elementary Householder reflectors."""
householder_product_p: Any
def lu(x: Any) -> Any:
    """The LU factors in one matrix, the pivots, and the permutation of the rows."""
lu_p: Any
def lu_pivots_to_permutation(pivots: Any, permutation_size: Any) -> Any:
    """The permutation that a sequence of row exchanges amounts to."""
lu_pivots_to_permutation_p: Any
def ormqr(a: Any, taus: Any, c: Any, *, left: Any = ..., transpose: Any = ...) -> Any:
    """The product of the Q of a QR decomposition, given by reflectors, with a matrix."""
ormqr_p: Any
def qdwh(x: Any, *, is_hermitian: Any = ..., max_iterations: Any = ..., eps: Any = ..., dynamic_shape: Any = ...) -> Any:
    """The polar decomposition by Halley iterations, their number, and whether they converged."""
def qr(x: Any, *, pivoting: Any = ..., full_matrices: Any = ..., use_magma: Any = ...) -> Any:
    """The QR decomposition; with pivoting also the permutation of the columns."""
qr_p: Any
def schur(x: Any, *, compute_schur_vectors: Any = ..., sort_eig_vals: Any = ..., select_callable: Any = ...) -> Any:
    """The Schur form, and the Schur vectors as requested."""
schur_p: Any
def svd(x: Any, *, full_matrices: Any = ..., compute_uv: Any = ..., subset_by_index: Any = ..., algorithm: Any = ...) -> Any:
    """The singular value decomposition u, s, vh."""
svd_p: Any
def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: Any = ..., beta: Any = ..., symmetrize_output: Any = ...) -> Any:
    """alpha a transpose(a) + beta c."""
symmetric_product_p: Any
def triangular_solve(a: Any, b: Any, *, left_side: Any = ..., lower: Any = ..., transpose_a: Any = ..., conjugate_a: Any = ..., unit_diagonal: Any = ...) -> Any:
    """The solution x of op(a) x = b or x op(a) = b for triangular a."""
triangular_solve_p: Any
def tridiagonal(a: Any, *, lower: Any = ...) -> Any:
    """A symmetric or Hermitian matrix reduced to tridiagonal form."""
tridiagonal_p: Any
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: Any = ...) -> Any:
    """The solution x of a x = b for a tridiagonal matrix a, given by its three diagonals."""
tridiagonal_solve_p: Any
