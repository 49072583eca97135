"""Types of capibara.jax.numpy.linalg. Made by tools/python/make_stubs.py."""
from typing import Any

def cholesky(a: Any, *, upper: Any = ..., symmetrize_input: Any = ...) -> Any:
    """The Cholesky factor of positive definite matrices; NaN where a matrix is not."""
def cond(x: Any, p: Any = ...) -> Any:
    """The condition number in one of the norms."""
def cross(x1: Any, x2: Any, *, axis: Any = ...) -> Any:
    """The cross product of vectors with three components."""
def det(a: Any) -> Any:
    """The determinant."""
def diagonal(x: Any, *, offset: Any = ...) -> Any:
    """A diagonal of the matrices in the last two dimensions."""
def eig(a: Any) -> Any:
    """Eigenvalues and right eigenvectors of general matrices."""
def eigh(a: Any, UPLO: Any = ..., symmetrize_input: Any = ...) -> Any:
    """Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices."""
def eigvals(a: Any) -> Any:
    """Eigenvalues of general matrices."""
def eigvalsh(a: Any, UPLO: Any = ..., *, symmetrize_input: Any = ...) -> Any:
    """Ascending eigenvalues of symmetric or Hermitian matrices."""
def inv(a: Any) -> Any:
    """The inverse matrices."""
def lstsq(a: Any, b: Any, rcond: Any = ..., *, numpy_resid: Any = ...) -> Any:
    """The least squares solution of a x = b, residuals, rank and singular values."""
def matmul(x1: Any, x2: Any, *, precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The matrix product."""
def matrix_norm(x: Any, *, keepdims: Any = ..., ord: Any = ...) -> Any:
    """The norm of the matrices in the last two dimensions."""
def matrix_power(a: Any, n: Any) -> Any:
    """The nth power of a square matrix, of its inverse for negative n."""
def matrix_rank(M: Any, rtol: Any = ..., *, hermitian: Any = ..., tol: Any = ...) -> Any:
    """The number of singular values above a tolerance."""
def matrix_transpose(x: Any) -> Any:
    """The array with its last two dimensions exchanged."""
def multi_dot(arrays: Any, *, precision: Any = ...) -> Any:
    """The product of several matrices in the cheapest order."""
def norm(x: Any, ord: Any = ..., axis: Any = ..., keepdims: Any = ...) -> Any:
    """The norm of vectors along one axis, or of matrices along two."""
def outer(x1: Any, x2: Any) -> Any:
    """The outer product of two vectors."""
def pinv(a: Any, rtol: Any = ..., hermitian: Any = ..., *, rcond: Any = ...) -> Any:
    """The Moore-Penrose pseudo-inverse."""
def qr(a: Any, mode: Any = ...) -> Any:
    """The QR decomposition: reduced, complete, r or raw."""
def slogdet(a: Any, *, method: Any = ...) -> Any:
    """The sign of the determinant and the logarithm of its absolute value."""
def solve(a: Any, b: Any) -> Any:
    """The solution x of a x = b."""
def svd(a: Any, full_matrices: Any = ..., compute_uv: Any = ..., hermitian: Any = ..., subset_by_index: Any = ...) -> Any:
    """The singular value decomposition."""
def svdvals(x: Any) -> Any:
    """The singular values, greatest first."""
def tensordot(x1: Any, x2: Any, *, axes: Any = ..., precision: Any = ..., preferred_element_type: Any = ..., out_sharding: Any = ...) -> Any:
    """The sum of products over the given axes."""
def tensorinv(a: Any, ind: Any = ...) -> Any:
    """The inverse of a tensor as a map between its last and its first dimensions."""
def tensorsolve(a: Any, b: Any, axes: Any = ...) -> Any:
    """The solution x of tensordot(a, x) = b."""
def trace(x: Any, *, offset: Any = ..., dtype: Any = ...) -> Any:
    """The sum of a diagonal of the matrices in the last two dimensions."""
def vecdot(x1: Any, x2: Any, *, axis: Any = ..., precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The dot product of vectors along one axis, x1 conjugated."""
def vector_norm(x: Any, *, axis: Any = ..., keepdims: Any = ..., ord: Any = ...) -> Any:
    """The norm of vectors along some axes, by default of all elements."""
