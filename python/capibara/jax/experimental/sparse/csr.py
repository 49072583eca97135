"""jax.experimental.sparse.csr: matrices stored by rows or by columns. BCSR does the same for batches."""
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array, tree_util
from capibara.jax.experimental.sparse._base import JAXSparse, check_matrix, number_of_diagonal, promoted
from capibara.jax.experimental.sparse.bcsr import _bcsr_fromdense
from capibara.jax.experimental.sparse.coo import COOInfo, _coo_todense, _oriented
from capibara.jax.experimental.sparse.util import _count_stored_elements, _csr_to_coo, concrete_count
from capibara.jax.typing import ArrayLike, DTypeLike


class _Compressed(JAXSparse):
    """The base of CSR and CSC: values, the minor index of each, and pointers to the starts and ends of rows or columns."""

    _transposed: bool

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)

    nse = property(lambda self: self.data.size)
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        lines = check_matrix(cls.__name__, shape)[cls._transposed]
        return cls((jnp.zeros(0, dtype), jnp.zeros(0, index_dtype), jnp.zeros(lines + 1, index_dtype)), shape=shape)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        count = number_of_diagonal(N, M, k)
        if cls._transposed:
            N, M, k = M, N, -k
        first = -min(k, 0)  # the first row (of CSC: column) with an element
        indptr = np.clip(np.arange(N + 1) - first, 0, count).astype(index_dtype)
        parts = jnp.ones(count, dtype), np.arange(count, dtype=index_dtype) + np.asarray(max(k, 0), index_dtype), indptr
        return cls(parts, shape=(M, N) if cls._transposed else (N, M))

    def _rows(self):
        """The matrix stored by rows: this one, or its transpose."""
        shape = self.shape[::-1] if self._transposed else self.shape
        return (self.data, self.indices, self.indptr), shape

    def todense(self) -> Array:
        """The dense matrix."""
        parts, shape = self._rows()
        out = _csr_todense(*parts, shape=shape)
        return out.T if self._transposed else out

    def __matmul__(self, other: ArrayLike) -> Array:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        (data, indices, indptr), shape = self._rows()
        data, other = promoted(data, other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"matmul with object of shape {other.shape}")
        return _csr_matvec(data, indices, indptr, other, shape=shape, transpose=self._transposed)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], tuple[int, ...]]:
        """The three arrays; the shape is static."""
        return (self.data, self.indices, self.indptr), self.shape

    @classmethod
    def tree_unflatten(cls, shape: tuple[int, ...], children: Sequence[Any]) -> Any:
        """The inverse of tree_flatten; the leaves may be any objects."""
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.shape = shape
        return self


@tree_util.register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix: row r has the values data[indptr[r]:indptr[r + 1]] at the columns indices[indptr[r]:indptr[r + 1]]."""

    _transposed = False

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> "CSR":
        """The nonzero elements of a matrix; nse, how many to keep, is counted where it is not given."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def transpose(self, axes: Sequence[int] | None = None) -> "CSC":
        """The transpose, with the same buffers stored by columns."""
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"CSR.transpose: axes={tuple(axes)}")
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@tree_util.register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix: column c has the values data[indptr[c]:indptr[c + 1]] at the rows indices[indptr[c]:indptr[c + 1]]."""

    _transposed = True

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> "CSC":
        """The nonzero elements of a matrix; nse, how many to keep, is counted where it is not given."""
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """The transpose, with the same buffers stored by rows."""
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"CSC.transpose: axes={tuple(axes)}")
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The nonzero elements of a matrix, row by row."""
    mat = jnp.asarray(mat)
    nse = concrete_count(_count_stored_elements(mat) if nse is None else nse)
    return CSR(_csr_fromdense(mat, nse=nse, index_dtype=index_dtype), shape=mat.shape)


def _csr_fromdense(mat: ArrayLike, *, nse: int, index_dtype: DTypeLike = np.int32) -> tuple[Array, Array, Array]:
    return _bcsr_fromdense(mat, nse=concrete_count(nse), index_dtype=index_dtype)


def csr_todense(mat: CSR) -> Array:
    """The dense matrix."""
    return mat.todense()


def _csr_todense(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, *, shape: Sequence[int]) -> Array:
    row, col = _csr_to_coo(jnp.asarray(indices), jnp.asarray(indptr))
    return _coo_todense(data, row, col, spinfo=COOInfo(tuple(shape)))


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a vector."""
    return _csr_matvec(*mat._bufs, v, shape=mat.shape, transpose=transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a matrix."""
    return _csr_matmat(*mat._bufs, B, shape=mat.shape, transpose=transpose)


def _csr_matvec(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, v: ArrayLike, *, shape: Sequence[int],
                transpose: bool = False) -> Array:
    row, col = _csr_to_coo(jnp.asarray(indices), jnp.asarray(indptr))
    return _oriented(data, row, col, v, tuple(shape), transpose)


_csr_matmat = _csr_matvec


explain_missing(__name__)
