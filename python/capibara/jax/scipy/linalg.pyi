"""Types of capibara.jax.scipy.linalg. Made by tools/python/make_stubs.py."""
from collections.abc import Callable
from typing import Any, Literal, overload
from capibara._core import Array
from capibara.jax.typing import ArrayLike, DTypeLike

def block_diag(*arrs: ArrayLike) -> Array:
    """A block diagonal matrix."""
def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, bool]:
    """A Cholesky factor and whether it is the lower one, for cho_solve."""
def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The solution x of a x = b, from the Cholesky factor of a."""
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factor of positive definite matrices; only one triangle is read."""
def circulant(c: ArrayLike) -> Array:
    """The matrix whose columns are the rotations of the first."""
def companion(a: ArrayLike) -> Array:
    """The companion matrix of a polynomial: its eigenvalues are the roots."""
def convolution_matrix(a: ArrayLike, n: int, mode: str = 'full') -> Array:
    """The matrix whose product with a vector of length n is the convolution with a."""
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant."""
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform."""
@overload
def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: Literal[False] = False, overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True) -> tuple[Array, Array]: ...
@overload
def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, *, eigvals_only: Literal[True], overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True) -> Array: ...
@overload
def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True) -> tuple[Array, Array] | Array:
    """Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices."""
@overload
def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: Literal[False] = False, select: str = 'a', select_range: tuple[float, float] | None = None, tol: float | None = None, key: ArrayLike | None = None) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: Literal[True], select: str = 'a', select_range: tuple[float, float] | None = None, tol: float | None = None, key: ArrayLike | None = None) -> Array: ...
@overload
def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = 'a', select_range: tuple[float, float] | None = None, tol: float | None = None, key: ArrayLike | None = None) -> tuple[Array, Array] | Array:
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix."""
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of matrices."""
@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True) -> tuple[Array, Array]: ...
@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]) -> Array: ...
@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> tuple[Array, Array] | Array:
    """The exponential of a matrix and its derivative in the direction E."""
def fiedler(a: ArrayLike) -> Array:
    """The absolute differences of all pairs of entries."""
def fiedler_companion(a: ArrayLike) -> Array:
    """The pentadiagonal companion matrix of a polynomial."""
@overload
def funm(A: ArrayLike, func: Callable[..., Any], disp: Literal[True] = True) -> Array: ...
@overload
def funm(A: ArrayLike, func: Callable[..., Any], disp: Literal[False]) -> tuple[Array, Array]: ...
@overload
def funm(A: ArrayLike, func: Callable[..., Any], disp: bool = True) -> Array | tuple[Array, Array]:
    """A function of a matrix, given as a function of its eigenvalues."""
def hadamard(n: int, dtype: DTypeLike = 'int') -> Array:
    """The Hadamard matrix of a power of two."""
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant antidiagonals, by its first column and last row."""
def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix."""
@overload
def hessenberg(a: ArrayLike, *, calc_q: Literal[False] = False, overwrite_a: bool = False, check_finite: bool = True) -> Array: ...
@overload
def hessenberg(a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]: ...
@overload
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array | tuple[Array, Array]:
    """The Hessenberg form, and the unitary matrix that makes it."""
def hilbert(n: int) -> Array:
    """The Hilbert matrix."""
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse matrices."""
def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix."""
def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the Pascal matrix."""
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """The Leslie matrix of a population: fecundities in the first row, survival below the diagonal."""
@overload
def lu(a: ArrayLike, permute_l: Literal[False] = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array, Array]: ...
@overload
def lu(a: ArrayLike, permute_l: Literal[True], overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]: ...
@overload
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array, Array] | tuple[Array, Array]:
    """The factors p, l and u of a = p l u."""
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Both factors in one matrix and the pivots, for lu_solve."""
def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The solution x of a x = b, from the LU factors of a."""
def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of binomial coefficients."""
def polar(a: ArrayLike, side: str = 'right', *, method: str = 'qdwh', eps: float | None = None, max_iterations: int | None = None) -> tuple[Array, Array]:
    """The polar decomposition: a unitary and a positive factor."""
def qr(a: ArrayLike, overwrite_a: bool = False, lwork: Any = None, mode: str = 'full', pivoting: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """The QR decomposition: full, economic or r."""
def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = 'right', pivoting: bool = False, conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False) -> tuple[Array, ...]:
    """The product of c with the Q of a QR decomposition, and R."""
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of a real one."""
def schur(a: ArrayLike, output: str = 'real') -> list[Array]:
    """The Schur form and its vectors."""
def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, debug: bool = False, check_finite: bool = True, assume_a: str = 'gen') -> Array:
    """The solution x of a x = b, for general, symmetric, Hermitian or positive definite a."""
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = 'schur', tol: float = 1e-08) -> Array:
    """The solution X of A X + X B = C."""
def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False, debug: Any = None, check_finite: bool = True) -> Array:
    """The solution x of a x = b for triangular a."""
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The square root of a matrix."""
@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True, overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = 'gesdd') -> tuple[Array, Array, Array]: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = 'gesdd') -> Array: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = 'gesdd') -> tuple[Array, Array, Array] | Array:
    """The singular value decomposition u, s, vh."""
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant diagonals, by its first column and first row."""
