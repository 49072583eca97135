"""Types of capibara.jax.numpy.linalg. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from typing import Literal, NamedTuple, overload
from capibara._core import Array
from capibara.jax._mesh import PartitionSpec
from capibara.jax._sharding import Sharding
from capibara.jax.lax import PrecisionLike
from capibara.jax.typing import ArrayLike, DTypeLike

def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factor of positive definite matrices; NaN where a matrix is not."""
def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """The condition number in one of the norms."""
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors with three components."""
def det(a: ArrayLike) -> Array:
    """The determinant."""
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """A diagonal of the matrices in the last two dimensions."""
class _EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array
def eig(a: ArrayLike) -> _EigResult:
    """Eigenvalues and right eigenvectors of general matrices."""
class _EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> _EighResult:
    """Ascending eigenvalues and the eigenvectors of symmetric or Hermitian matrices."""
def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of general matrices."""
def eigvalsh(a: ArrayLike, UPLO: str | None = 'L', *, symmetrize_input: bool = True) -> Array:
    """Ascending eigenvalues of symmetric or Hermitian matrices."""
def inv(a: ArrayLike) -> Array:
    """The inverse matrices."""
def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False) -> tuple[Array, Array, Array, Array]:
    """The least squares solution of a x = b, residuals, rank and singular values."""
def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The matrix product."""
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str = 'fro') -> Array:
    """The norm of the matrices in the last two dimensions."""
def matrix_power(a: ArrayLike, n: int) -> Array:
    """The nth power of a square matrix, of its inverse for negative n."""
def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None) -> Array:
    """The number of singular values above a tolerance."""
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two dimensions exchanged."""
def multi_dot(arrays: ArrayLike | Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices in the cheapest order."""
def norm(x: ArrayLike, ord: float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The norm of vectors along one axis, or of matrices along two."""
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The outer product of two vectors."""
def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None) -> Array:
    """The Moore-Penrose pseudo-inverse."""
class _QRResult(NamedTuple):
    Q: Array
    R: Array
@overload
def qr(a: ArrayLike, mode: Literal['reduced', 'complete', 'full', 'raw'] = 'reduced') -> _QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal['r']) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str = 'reduced') -> _QRResult | Array:
    """The QR decomposition: reduced, complete, r or raw."""
class _SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array
def slogdet(a: ArrayLike, *, method: str | None = None) -> _SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value."""
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solution x of a x = b."""
class _SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array
@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> _SVDResult: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> Array: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> _SVDResult | Array:
    """The singular value decomposition."""
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, greatest first."""
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The sum of products over the given axes."""
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a tensor as a map between its last and its first dimensions."""
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The solution x of tensordot(a, x) = b."""
def trace(x: ArrayLike, /, *, offset: ArrayLike = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of a diagonal of the matrices in the last two dimensions."""
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The dot product of vectors along one axis, x1 conjugated."""
def vector_norm(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float | str = 2) -> Array:
    """The norm of vectors along some axes, by default of all elements."""
