"""Sparse arrays by rows: BCSR, and the functions of jax.experimental.sparse on them. What it computes is computed by BCOO."""
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax.numpy as jnp
from capibara.jax import Array, tree_util
from capibara.jax.experimental.sparse import (
    BCOO,
    DotDimensionNumbers,
    JAXSparse,
    _with_batches,
    bcoo_dot_general,
    bcoo_fromdense,
    bcoo_sort_indices,
)
from capibara.jax.typing import ArrayLike, DTypeLike


@tree_util.register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array: row r of data[*batch, nse, *dense] stands at columns indices[*batch, indptr[r]:indptr[r + 1]]."""

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self._check()

    def _check(self):
        if not (jnp.issubdtype(self.indices.dtype, jnp.integer) and jnp.issubdtype(self.indptr.dtype, jnp.integer)):
            raise ValueError(f"BCSR: indices and indptr must be integers, got {self.indices.aval} and {self.indptr.aval}")
        if self.indices.ndim < 1 or self.n_dense < 0 or self.indptr.ndim != self.indices.ndim:
            raise ValueError(f"BCSR array must have 2 sparse dimensions; got shape {self.shape} with indices {self.indices.aval}")
        if self.indptr.shape[-1] != self.shape[self.n_batch] + 1:
            raise ValueError(f"indptr shape must match the matrix shape plus 1: got {self.indptr.shape} for shape {self.shape}")
        if self.data.ndim < self.n_batch + 1 or self.data.shape[self.n_batch] != self.nse:
            raise ValueError(f"BCSR: data {self.data.aval} and indices {self.indices.aval} are not those of an array of shape {self.shape}")

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: len(self.shape) - self.n_batch - 2)
    nse = property(lambda self: self.indices.shape[-1])
    dtype = property(lambda self: self.data.dtype)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0,
                  n_batch: int = 0) -> "BCSR":
        """The nonzero elements of an array; nse, how many to keep, is counted where it is not given."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0) -> "BCSR":
        """A matrix of scipy.sparse."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        mat = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(kind), mat.indptr.astype(kind)), shape=mat.shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> "BCSR":
        """The same array by rows."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; got arr.n_sparse={arr.n_sparse}")
        arr = arr if arr.indices_sorted else bcoo_sort_indices(arr)
        count = arr.shape[arr.n_batch] + 1

        def row_ends(rows):
            return jnp.searchsorted(rows, jnp.arange(count, dtype=rows.dtype)).astype(rows.dtype)

        indptr = _with_batches(arr.n_batch)(row_ends)(arr.indices[..., 0])
        return cls((arr.data, arr.indices[..., 1], indptr), shape=arr.shape, indices_sorted=True, unique_indices=arr.unique_indices)

    def to_bcoo(self) -> BCOO:
        """The same array by coordinates; what is padding stands beyond the last row."""
        def rows_of(ends):
            return (jnp.searchsorted(ends, jnp.arange(self.nse, dtype=ends.dtype), side="right") - 1).astype(self.indices.dtype)

        rows = _with_batches(self.n_batch)(rows_of)(self.indptr)
        return BCOO((self.data, jnp.stack([jnp.broadcast_to(rows, self.indices.shape), self.indices], -1)), shape=self.shape,
                    indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    def todense(self) -> Array:
        """The array with all its elements."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCSR":
        """Each coordinate once, without those where all values are zero unless they are to be kept."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse=nse, remove_zeros=remove_zeros))

    def astype(self, dtype: DTypeLike) -> "BCSR":
        """The same with elements of another type."""
        return self._of(self.data.astype(dtype))

    def block_until_ready(self) -> "BCSR":
        """Waits until its arrays are computed."""
        for array in (self.data, self.indices, self.indptr):
            array.block_until_ready()
        return self

    def _of(self, data):
        return BCSR((data, self.indices, self.indptr), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    def __neg__(self):
        return self._of(-self.data)

    def __matmul__(self, other):
        return self.to_bcoo() @ (other.to_bcoo() if isinstance(other, BCSR) else other)

    def __rmatmul__(self, other):
        return other @ self.to_bcoo()

    __repr__ = BCOO.__repr__

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], tuple[tuple[int, ...], bool, bool]]:
        """The three arrays; the rest is fixed."""
        return (self.data, self.indices, self.indptr), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, fixed: tuple[tuple[int, ...], bool, bool], children: Sequence[object]) -> "BCSR":
        """The opposite of tree_flatten; the leaves may be anything."""
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.shape, self.indices_sorted, self.unique_indices = fixed
        return self


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCSR:
    """The nonzero elements of an array by rows."""
    if np.ndim(mat) - n_batch - n_dense != 2:
        raise ValueError(f"bcsr_fromdense: must have 2 sparse dimensions, got shape {np.shape(mat)}, n_batch={n_batch}, n_dense={n_dense}")
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """The array with all its elements."""
    return mat.todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Each coordinate once."""
    return mat.sum_duplicates(nse=nse, remove_zeros=False)


def bcsr_dot_general(lhs: BCSR | ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers, precision=None,
                     preferred_element_type: DTypeLike | None = None) -> Array:
    """lax.dot_general of a sparse and a dense array."""
    lhs, rhs = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
    return bcoo_dot_general(lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
                            preferred_element_type=preferred_element_type)
