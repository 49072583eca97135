"""Types of capibara.jax.lax.linalg. Made by tools/python/make_stubs.py."""
from collections.abc import Callable
from typing import Any, Literal, overload
from capibara._core import Array, CatalogPrimitive
from capibara.jax.typing import ArrayLike
from capibara._types import EigImplementation as EigImplementation
from capibara._types import EighImplementation as EighImplementation
from capibara._types import SvdAlgorithm as SvdAlgorithm

def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower Cholesky factor of positive definite matrices; NaN where a matrix is not."""
cholesky_p: CatalogPrimitive
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper Cholesky factor after a rank-one update."""
cholesky_update_p: CatalogPrimitive
def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None, use_magma: bool | None = None) -> list[Array]:
    """Eigenvalues of general matrices, and their left and right eigenvectors as requested."""
eig_p: CatalogPrimitive
def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None, implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """Eigenvectors and ascending eigenvalues of symmetric or Hermitian matrices."""
eigh_p: CatalogPrimitive
def hessenberg(a: ArrayLike) -> list[Array]:
    """The Hessenberg form with Householder reflectors below it, and their factors."""
hessenberg_p: CatalogPrimitive
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The product of elementary Householder reflectors."""
householder_product_p: CatalogPrimitive
def lu(x: ArrayLike) -> list[Array]:
    """The LU factors in one matrix, the pivots, and the permutation of the rows."""
lu_p: CatalogPrimitive
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that a sequence of row exchanges amounts to."""
lu_pivots_to_permutation_p: CatalogPrimitive
def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """The product of the Q of a QR decomposition, given by reflectors, with a matrix."""
ormqr_p: CatalogPrimitive
def qdwh(x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None, dynamic_shape: None = None) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition by Halley iterations, their number, and whether they converged."""
@overload
def qr(x: ArrayLike, *, pivoting: Literal[False] = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, Array]: ...
@overload
def qr(x: ArrayLike, *, pivoting: Literal[True], full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, Array, Array]: ...
@overload
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The QR decomposition; with pivoting also the permutation of the columns."""
qr_p: CatalogPrimitive
def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Callable[..., Any] | None = None) -> list[Array]:
    """The Schur form, and the Schur vectors as requested."""
schur_p: CatalogPrimitive
@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[True] = True, subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None) -> tuple[Array, Array, Array]: ...
@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[False], subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None) -> Array: ...
@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None) -> tuple[Array, Array, Array] | Array:
    """The singular value decomposition u, s, vh."""
svd_p: CatalogPrimitive
def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False) -> Array:
    """alpha a transpose(a) + beta c."""
symmetric_product_p: CatalogPrimitive
def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False, conjugate_a: bool = False, unit_diagonal: bool = False) -> Array:
    """The solution x of op(a) x = b or x op(a) = b for triangular a."""
triangular_solve_p: CatalogPrimitive
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """A symmetric or Hermitian matrix reduced to tridiagonal form."""
tridiagonal_p: CatalogPrimitive
def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False) -> Array:
    """The solution x of a x = b for a tridiagonal matrix a, given by its three diagonals."""
tridiagonal_solve_p: CatalogPrimitive
