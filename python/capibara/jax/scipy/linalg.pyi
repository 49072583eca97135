"""Types of capibara.jax.scipy.linalg. Made by tools/python/make_stubs.py."""
from typing import Any

def block_diag(*arrs: Any) -> Any:
    """A block diagonal matrix."""
def cho_factor(a: Any, lower: Any = ..., overwrite_a: Any = ..., check_finite: Any = ...) -> Any:
    """A Cholesky factor and whether it is the lower one, for cho_solve."""
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: Any = ..., check_finite: Any = ...) -> Any:
    """The solution x of a x = b, from the Cholesky factor of a."""
def cholesky(a: Any, lower: Any = ..., overwrite_a: Any = ..., check_finite: Any = ...) -> Any:
    """The Cholesky factor of positive definite matrices; only one triangle is read."""
def circulant(c: Any) -> Any:
    """The matrix whose columns are the rotations of the first."""
def companion(a: Any) -> Any:
    """The companion matrix of a polynomial: its eigenvalues are the roots."""
def convolution_matrix(a: Any, n: Any, mode: Any = ...) -> Any:
    """The matrix whose product with a vector of length n is the convolution with a."""
def det(a: Any, overwrite_a: Any = ..., check_finite: Any = ...) -> Any:
    """The determinant."""
def dft(n: Any, scale: Any = ..., *, dtype: Any = ...) -> Any:
    """The matrix of the discrete Fourier transform."""
def eigh(a: Any, b: Any = ..., lower: Any = ..., eigvals_only: Any = ..., overwrite_a: Any = ..., overwrite_b: Any = ..., turbo: Any = ..., eigvals: Any = ..., type: Any = ..., check_finite: Any = ...) -> Any:
    """Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices."""
def eigh_tridiagonal(d: Any, e: Any, *, eigvals_only: Any = ..., select: Any = ..., select_range: Any = ..., tol: Any = ..., key: Any = ...) -> Any:
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix."""
def expm(A: Any, *, upper_triangular: Any = ..., max_squarings: Any = ...) -> Any:
    """The exponential of matrices."""
def expm_frechet(A: Any, E: Any, *, method: Any = ..., compute_expm: Any = ...) -> Any:
    """The exponential of a matrix and its derivative in the direction E."""
def fiedler(a: Any) -> Any:
    """The absolute differences of all pairs of entries."""
def fiedler_companion(a: Any) -> Any:
    """The pentadiagonal companion matrix of a polynomial."""
def funm(A: Any, func: Any, disp: Any = ...) -> Any:
    """A function of a matrix, given as a function of its eigenvalues."""
def hadamard(n: Any, dtype: Any = ...) -> Any:
    """The Hadamard matrix of a power of two."""
def hankel(c: Any, r: Any = ...) -> Any:
    """The matrix with constant antidiagonals, by its first column and last row."""
def helmert(n: Any, full: Any = ...) -> Any:
    """The Helmert matrix."""
def hessenberg(a: Any, *, calc_q: Any = ..., overwrite_a: Any = ..., check_finite: Any = ...) -> Any:
    """The Hessenberg form, and the unitary matrix that makes it."""
def hilbert(n: Any) -> Any:
    """The Hilbert matrix."""
def inv(a: Any, overwrite_a: Any = ..., check_finite: Any = ...) -> Any:
    """The inverse matrices."""
def invhilbert(n: Any) -> Any:
    """The inverse of the Hilbert matrix."""
def invpascal(n: Any, kind: Any = ...) -> Any:
    """The inverse of the Pascal matrix."""
def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of a population: fecundities in the first row, survival below the diagonal."""
def lu(a: Any, permute_l: Any = ..., overwrite_a: Any = ..., check_finite: Any = ...) -> Any:
    """The factors p, l and u of a = p l u."""
def lu_factor(a: Any, overwrite_a: Any = ..., check_finite: Any = ...) -> Any:
    """Both factors in one matrix and the pivots, for lu_solve."""
def lu_solve(lu_and_piv: Any, b: Any, trans: Any = ..., overwrite_b: Any = ..., check_finite: Any = ...) -> Any:
    """The solution x of a x = b, from the LU factors of a."""
def pascal(n: Any, kind: Any = ...) -> Any:
    """The matrix of binomial coefficients."""
def polar(a: Any, side: Any = ..., *, method: Any = ..., eps: Any = ..., max_iterations: Any = ...) -> Any:
    """The polar decomposition: a unitary and a positive factor."""
def qr(a: Any, overwrite_a: Any = ..., lwork: Any = ..., mode: Any = ..., pivoting: Any = ..., check_finite: Any = ...) -> Any:
    """The QR decomposition: full, economic or r."""
def qr_multiply(a: Any, c: Any, mode: Any = ..., pivoting: Any = ..., conjugate: Any = ..., overwrite_a: Any = ..., overwrite_c: Any = ...) -> Any:
    """The product of c with the Q of a QR decomposition, and R."""
def rsf2csf(T: Any, Z: Any, check_finite: Any = ...) -> Any:
    """The complex Schur form of a real one."""
def schur(a: Any, output: Any = ...) -> Any:
    """The Schur form and its vectors."""
def solve(a: Any, b: Any, lower: Any = ..., overwrite_a: Any = ..., overwrite_b: Any = ..., debug: Any = ..., check_finite: Any = ..., assume_a: Any = ...) -> Any:
    """The solution x of a x = b, for general, symmetric, Hermitian or positive definite a."""
def solve_sylvester(A: Any, B: Any, C: Any, *, method: Any = ..., tol: Any = ...) -> Any:
    """The solution X of A X + X B = C."""
def solve_triangular(a: Any, b: Any, trans: Any = ..., lower: Any = ..., unit_diagonal: Any = ..., overwrite_b: Any = ..., debug: Any = ..., check_finite: Any = ...) -> Any:
    """The solution x of a x = b for triangular a."""
def sqrtm(A: Any, blocksize: Any = ...) -> Any:
    """The square root of a matrix."""
def svd(a: Any, full_matrices: Any = ..., compute_uv: Any = ..., overwrite_a: Any = ..., check_finite: Any = ..., lapack_driver: Any = ...) -> Any:
    """The singular value decomposition u, s, vh."""
def toeplitz(c: Any, r: Any = ...) -> Any:
    """The matrix with constant diagonals, by its first column and first row."""
