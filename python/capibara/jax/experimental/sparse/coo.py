"""jax.experimental.sparse.coo: matrices stored as rows, columns and values. BCOO does the same for arrays of any rank."""
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array, lax, tree_util
from capibara.jax.experimental.sparse._base import JAXSparse, check_matrix, number_of_diagonal, promoted
from capibara.jax.experimental.sparse.util import _count_stored_elements, concrete_count
from capibara.jax.typing import ArrayLike, DTypeLike


class COOInfo(NamedTuple):
    """The properties of a matrix besides its buffers."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@tree_util.register_pytree_node_class
class COO(JAXSparse):
    """A sparse matrix with values data[i] at (row[i], col[i])."""

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int], rows_sorted: bool = False,
                 cols_sorted: bool = False) -> None:
        self.data, self.row, self.col = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    nse = property(lambda self: self.data.size)
    _info = property(lambda self: COOInfo(self.shape, self._rows_sorted, self._cols_sorted))
    _bufs = property(lambda self: (self.data, self.row, self.col))

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> "COO":
        """The nonzero elements of a matrix; nse, the number to store, is counted by default."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        check_matrix("COO", shape)
        none = jnp.zeros(0, index_dtype)
        return cls((jnp.zeros(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        steps = np.arange(number_of_diagonal(N, M, k), dtype=index_dtype)
        parts = jnp.ones(len(steps), dtype), steps - min(k, 0), steps + max(k, 0)
        return cls(parts, shape=(N, M), rows_sorted=True, cols_sorted=True)

    def _sort_indices(self):
        if self._rows_sorted:
            return self
        row, col, data = lax.sort((self.row, self.col, self.data), num_keys=2)
        return COO((data, row, col), shape=self.shape, rows_sorted=True)

    def todense(self) -> Array:
        """The dense matrix."""
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> "COO":
        """The transpose."""
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"COO.transpose: axes={tuple(axes)}")
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted)

    def __matmul__(self, other: ArrayLike) -> Array:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        data, other = promoted(self.data, other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"matmul with object of shape {other.shape}")
        return _product(data, self.row, self.col, other, self.shape)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], tuple[tuple[int, ...], bool, bool]]:
        """The three arrays; the rest is static."""
        return (self.data, self.row, self.col), tuple(self._info)

    @classmethod
    def tree_unflatten(cls, fixed: tuple[tuple[int, ...], bool, bool], children: Sequence[Any]) -> "COO":
        """The inverse of tree_flatten; the leaves may be any objects."""
        self = object.__new__(cls)
        self.data, self.row, self.col = children
        self.shape, self._rows_sorted, self._cols_sorted = fixed
        return self


def coo_todense(mat: COO) -> Array:
    """The dense matrix."""
    return _coo_todense(mat.data, mat.row, mat.col, spinfo=mat._info)


def _coo_todense(data: ArrayLike, row: ArrayLike, col: ArrayLike, *, spinfo: COOInfo) -> Array:
    data = jnp.asarray(data)
    return jnp.zeros(spinfo.shape, data.dtype).at[row, col].add(data, mode="drop")


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
    """The nonzero elements of a matrix, row by row."""
    mat = jnp.asarray(mat)
    nse = concrete_count(_count_stored_elements(mat) if nse is None else nse)
    return COO(_coo_fromdense(mat, nse=nse, index_dtype=index_dtype), shape=mat.shape, rows_sorted=True)


def _coo_fromdense(mat: ArrayLike, *, nse: int, index_dtype: DTypeLike = np.int32) -> tuple[Array, Array, Array]:
    mat = jnp.asarray(mat)
    check_matrix("COO", mat.shape)
    row, col = (place.astype(index_dtype) for place in jnp.nonzero(mat, size=concrete_count(nse), fill_value=mat.shape))
    return mat.at[row, col].get(mode="fill", fill_value=0), row, col


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a vector."""
    return _coo_matvec(*mat._bufs, v, spinfo=mat._info, transpose=transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a matrix."""
    return _coo_matmat(*mat._bufs, B, spinfo=mat._info, transpose=transpose)


def _coo_matvec(data: ArrayLike, row: ArrayLike, col: ArrayLike, v: ArrayLike, *, spinfo: COOInfo, transpose: bool = False) -> Array:
    return _oriented(data, row, col, v, spinfo.shape, transpose)


_coo_matmat = _coo_matvec


def _oriented(data, row, col, other, shape, transpose):
    data, row, col, other = map(jnp.asarray, (data, row, col, other))
    return _product(data, col, row, other, shape[::-1]) if transpose else _product(data, row, col, other, shape)


def _product(data, row, col, other, shape):
    if other.shape[0] != shape[1]:
        raise TypeError(f"a sparse matrix of shape {tuple(shape)} times an array of shape {other.shape}: sizes {shape[1]} and "
                        f"{other.shape[0]} must be equal")
    rows = other.at[col].get(mode="fill", fill_value=0)
    terms = data.reshape(data.shape + (1,) * (other.ndim - 1)) * rows
    return jnp.zeros((shape[0], *other.shape[1:]), terms.dtype).at[row].add(terms, mode="drop")


explain_missing(__name__)
