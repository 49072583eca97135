"""jax.experimental.sparse.bcsr: sparse arrays stored by rows; computations use BCOO."""
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax.numpy as jnp
from capibara import _vmappables
from capibara._modules import explain_missing
from capibara.jax import Array, tree_util
from capibara.jax.experimental.sparse._base import JAXSparse
from capibara.jax.experimental.sparse._products import DotDimensionNumbers, bcoo_dot_general
from capibara.jax.experimental.sparse._shapes import bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_update_layout
from capibara.jax.experimental.sparse.bcoo import BCOO, _bcoo_extract, _bcoo_fromdense, bcoo_sort_indices
from capibara.jax.experimental.sparse.util import SparseInfo, _count_stored_elements, concrete_count, nfold_vmap, rows_of_pointers
from capibara.jax.typing import ArrayLike, DTypeLike


@tree_util.register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array with values data[*batch, nse, *dense]: row r has the columns indices[*batch, indptr[r]:indptr[r + 1]]."""

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self._check()

    def _check(self):
        if not (jnp.issubdtype(self.indices.dtype, jnp.integer) and jnp.issubdtype(self.indptr.dtype, jnp.integer)):
            raise ValueError(f"BCSR: indices and indptr must be integers, got {self.indices.aval} and {self.indptr.aval}")
        if self.indices.ndim < 1 or self.n_dense < 0 or self.indptr.ndim != self.indices.ndim or \
                self.n_batch + 2 + self.n_dense != len(self.shape):
            raise ValueError(f"BCSR array must have 2 sparse dimensions; got shape {self.shape} with indices {self.indices.aval}")
        if self.indptr.shape[-1] != self.shape[self.n_batch] + 1:
            raise ValueError(f"indptr shape must match the matrix shape plus 1: got {self.indptr.shape} for shape {self.shape}")
        if self.data.ndim < self.n_batch + 1 or self.data.shape[self.n_batch] != self.nse:
            raise ValueError(f"BCSR: data {self.data.aval} and indices {self.indices.aval} are not those of an array of shape {self.shape}")

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    nse = property(lambda self: self.indices.shape[-1])
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0,
                  n_batch: int = 0) -> "BCSR":
        """The nonzero elements of an array; nse, the number to store, is counted by default."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0) -> "BCSR":
        """Converts a scipy.sparse matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        mat = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(kind), mat.indptr.astype(kind)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
        if min(n_dense, n_batch, nse) < 0 or len(shape) - n_batch - n_dense != 2:
            raise ValueError(f"BCSR: invalid layout of an empty array: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        batch, rows, dense = shape[:n_batch], shape[n_batch], shape[n_batch + 2:]
        data, columns = jnp.zeros((*batch, nse, *dense), dtype), jnp.full((*batch, nse), shape[n_batch + 1], index_dtype)
        parts = data, columns, jnp.zeros((*batch, rows + 1), index_dtype)
        return cls(parts, shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> "BCSR":
        """The same array stored by rows."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; got arr.n_sparse={arr.n_sparse}")
        arr = arr if arr.indices_sorted else bcoo_sort_indices(arr)
        indices, indptr = _bcoo_to_bcsr(arr.indices, shape=arr.shape)
        return cls((arr.data, indices, indptr), shape=arr.shape, indices_sorted=True, unique_indices=arr.unique_indices)

    def to_bcoo(self) -> BCOO:
        """The same array stored by coordinates; padding gets a row index past the end."""
        indices = _bcsr_to_bcoo(self.indices, self.indptr, shape=self.shape)
        return BCOO((self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    def todense(self) -> Array:
        """The dense array."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCSR":
        """Sums duplicate coordinates; with remove_zeros, drops coordinates whose values are all zero."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse=nse, remove_zeros=remove_zeros))

    def _of(self, data):
        return BCSR((data, self.indices, self.indptr), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], tuple[tuple[int, ...], bool, bool]]:
        """The three arrays; the rest is static."""
        return (self.data, self.indices, self.indptr), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, fixed: tuple[tuple[int, ...], bool, bool], children: Sequence[object]) -> "BCSR":
        """The inverse of tree_flatten; the leaves may be any objects."""
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self.shape, self.indices_sorted, self.unique_indices = fixed
        return self


def _map_elements(cont, _, mat, axis):
    """One element of the mapped axis, for vmap."""
    if axis is None:
        return mat
    if not 0 <= axis < mat.n_batch:
        raise ValueError(f"Cannot map in_axis={axis} for BCSR array with n_batch={mat.n_batch}. "
                         "in_axes for batched BCSR operations must correspond to a batched dimension.")
    shape = mat.shape[:axis] + mat.shape[axis + 1:]
    return BCSR.tree_unflatten((shape, mat.indices_sorted, mat.unique_indices), [cont(part, axis) for part in mat._bufs])


def _join_elements(cont, size, element, axis):
    """The array with these elements along the mapped axis, for vmap."""
    if axis is None:
        return element
    if not 0 <= axis <= element.n_batch:
        raise ValueError(f"BCSR: cannot add out_axis={axis} for BCSR array with n_batch={element.n_batch}. "
                         "BCSR batch axes must be a contiguous block of leading dimensions.")
    shape = element.shape[:axis] + (size,) + element.shape[axis:]
    parts = [cont(size, part, axis) for part in element._bufs]
    return BCSR.tree_unflatten((shape, element.indices_sorted, element.unique_indices), parts)


_vmappables.register(BCSR, int, _map_elements, _join_elements)


def _bcoo_to_bcsr(indices: Array, *, shape: Sequence[int], index_dtype: DTypeLike | None = None) -> tuple[Array, Array]:
    """Column indices and row pointers of sorted coordinates [*batch, nse, 2]."""
    n_batch = indices.ndim - 2
    if indices.shape[-1] != 2:
        raise ValueError(f"Must have 2 sparse dimensions to be converted to BCSR. Got {indices.shape[-1]}.")
    dtype = index_dtype or indices.dtype

    def row_ends(rows):
        return jnp.searchsorted(rows, jnp.arange(shape[n_batch] + 1, dtype=rows.dtype)).astype(dtype)
    return indices[..., 1].astype(dtype), nfold_vmap(row_ends, n_batch, broadcasted=False)(indices[..., 0])


def _bcsr_to_bcoo(indices: Array, indptr: Array, *, shape: Sequence[int]) -> Array:
    """Coordinates [*batch, nse, 2] of elements stored by rows; padding gets a row index past the end."""
    nse = indices.shape[-1]
    rows = nfold_vmap(lambda ends: rows_of_pointers(ends, nse, indices.dtype), indptr.ndim - 1, broadcasted=False)(indptr)
    whole = np.broadcast_shapes(rows.shape, indices.shape)
    return jnp.stack([jnp.broadcast_to(rows, whole), jnp.broadcast_to(indices, whole)], -1)


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCSR:
    """The nonzero elements of an array, stored by rows."""
    mat = jnp.asarray(mat)
    nse = concrete_count(_count_stored_elements(mat, n_batch, n_dense) if nse is None else nse)
    parts = _bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCSR(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _bcsr_fromdense(mat: ArrayLike, *, nse: int, n_batch: int = 0, n_dense: int = 0,
                    index_dtype: DTypeLike = np.int32) -> tuple[Array, Array, Array]:
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(f"bcsr_fromdense: must have 2 sparse dimensions, got shape {mat.shape}, n_batch={n_batch}, n_dense={n_dense}")
    data, indices = _bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return data, *_bcoo_to_bcsr(indices, shape=mat.shape, index_dtype=index_dtype)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array."""
    return mat.todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Sums duplicate coordinates."""
    return mat.sum_duplicates(nse=nse, remove_zeros=False)


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """Drops elements whose values are all zero, and adds values at duplicate coordinates."""
    return mat.sum_duplicates(nse=nse)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The values of an array at coordinates stored by rows."""
    mat = jnp.asarray(mat)
    return _bcoo_extract(_bcsr_to_bcoo(jnp.asarray(indices), jnp.asarray(indptr), shape=mat.shape), mat)


def bcsr_dot_general(lhs: BCSR | ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers, precision=None,
                     preferred_element_type: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """lax.dot_general for a sparse and a dense array."""
    lhs, rhs = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        raise NotImplementedError("bcsr_dot_general not implemented for two sparse arrays; use to_bcoo()")
    return bcoo_dot_general(lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
                            preferred_element_type=preferred_element_type, out_sharding=out_sharding)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None) -> BCSR:
    """Broadcasts the array along new dimensions; those before the last two non-dense dimensions are batch dimensions."""
    out = bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding)
    return _by_rows(out)


def _by_rows(mat):
    """An array stored by rows of its last two non-dense dimensions."""
    more = mat.n_sparse - 2
    return BCSR.from_bcoo(mat if not more else bcoo_update_layout(mat, n_batch=mat.n_batch + more, on_inefficient=None))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Concatenates sparse arrays along a batch dimension, rows or columns."""
    return _by_rows(bcoo_sort_indices(bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension)))


explain_missing(__name__)
