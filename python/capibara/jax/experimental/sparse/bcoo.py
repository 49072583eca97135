"""jax.experimental.sparse.bcoo: arrays stored as the coordinates and values of their nonzero elements.

Products, sums and conversions are ordinary programs of sorts, gathers and scatters, so every transformation applies; derivatives
are with respect to the stored values.
"""
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _vmappables
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.experimental.sparse._base import JAXSparse, number_of_diagonal
from capibara.jax.experimental.sparse.util import (
    SparseInfo,
    _count_stored_elements,
    concrete_count,
    inside_of,
    linear_order,
    nfold_vmap,
    over_dense,
)
from capibara.jax.typing import ArrayLike, DTypeLike


@jax.tree_util.register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array with values data[*batch, nse, *dense] at indices[*batch, nse, sparse]; out-of-range indices are padding."""

    def __init__(self, args: tuple[ArrayLike, ArrayLike], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False) -> None:
        self.data, self.indices = map(jnp.asarray, args)
        self.shape = tuple(map(operator.index, shape))
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        _check(self.data, self.indices, self.shape)

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    nse = property(lambda self: self.indices.shape[-2])
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _bufs = property(lambda self: (self.data, self.indices))

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0,
                  n_batch: int = 0) -> "BCOO":
        """The nonzero elements of an array; nse, the number to store, is counted by default."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0) -> "BCOO":
        """Converts a scipy.sparse matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = np.column_stack((mat.row, mat.col)).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
        end = len(shape) - n_dense
        if min(n_dense, n_batch, nse, end - n_batch) < 0:
            raise ValueError(f"BCOO: invalid layout of an empty array: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        data = jnp.zeros((*shape[:n_batch], nse, *shape[end:]), dtype)
        beyond = jnp.asarray(shape[n_batch:end], index_dtype)
        indices = jnp.broadcast_to(beyond, (*shape[:n_batch], nse, end - n_batch))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", n_batch=0, n_dense=0):
        if min(n_batch, n_dense, 2 - n_batch - n_dense) < 0:
            raise ValueError(f"BCOO: invalid layout of a matrix: shape={(N, M)}, {n_dense=}, {n_batch=}")
        count = number_of_diagonal(N, M, k)
        if not count:
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense)
        if n_batch or n_dense:
            nse = count if (n_batch, n_dense) == (0, 1) else 1
            return cls.fromdense(jnp.eye(N, M, k, dtype=dtype), nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
        steps = np.arange(count)
        indices = np.column_stack([steps - min(k, 0), steps + max(k, 0)]).astype(index_dtype)
        return cls((jnp.ones(count, dtype), indices), shape=(N, M), indices_sorted=True, unique_indices=True)

    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCOO":
        """Sums duplicate coordinates; with remove_zeros, drops coordinates whose values are all zero."""
        return bcoo_eliminate_zeros(self, nse=nse) if remove_zeros else bcoo_sum_duplicates(self, nse=nse)

    def sort_indices(self) -> "BCOO":
        """Sorts the coordinates in ascending order."""
        return bcoo_sort_indices(self)

    def transpose(self, axes: Sequence[int] | None = None) -> "BCOO":
        """Permutes the dimensions."""
        return bcoo_transpose(self, permutation=tuple(range(self.ndim))[::-1] if axes is None else axes)

    def _of(self, data):
        return BCOO((data, self.indices), shape=self.shape, indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    def tree_flatten(self) -> tuple[tuple[Array, Array], tuple[tuple[int, ...], bool, bool]]:
        """The two arrays; the rest is static."""
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, fixed: tuple[tuple[int, ...], bool, bool], children: Sequence[Any]) -> "BCOO":
        """The inverse of tree_flatten; the leaves may be any objects."""
        self = object.__new__(cls)
        self.data, self.indices = children
        self.shape, self.indices_sorted, self.unique_indices = fixed
        return self


def _check(data, indices, shape):
    if indices.ndim < 2 or not jnp.issubdtype(indices.dtype, jnp.integer):
        raise ValueError(f"BCOO: indices must be integers [..., nse, sparse dimensions], got {indices.aval}")
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    n_dense = len(shape) - n_batch - n_sparse
    fits = n_dense >= 0 and data.ndim == n_batch + 1 + n_dense and data.shape[n_batch:] == (indices.shape[-2], *shape[n_batch + n_sparse:])
    if not fits or any(size not in (1, whole) for buffer in (data, indices) for size, whole in zip(buffer.shape[:n_batch], shape)):
        raise ValueError(f"BCOO: data {data.aval} and indices {indices.aval} are not those of an array of shape {shape}")


def _map_elements(cont, _, mat, axis):
    """One element of the mapped axis, for vmap."""
    if axis is None:
        return mat
    if not 0 <= axis < mat.n_batch:
        raise ValueError(f"Cannot map in_axis={axis} for BCOO array with n_batch={mat.n_batch}. "
                         "in_axes for batched BCOO operations must correspond to a batch dimension.")
    shape = mat.shape[:axis] + mat.shape[axis + 1:]
    return BCOO.tree_unflatten((shape, mat.indices_sorted, mat.unique_indices), [cont(part, axis) for part in (mat.data, mat.indices)])


def _join_elements(cont, size, element, axis):
    """The array with these elements along the mapped axis, for vmap."""
    if axis is None:
        return element
    if not 0 <= axis <= element.n_batch:
        raise ValueError(f"BCOO: cannot add out_axis={axis} for BCOO array with n_batch={element.n_batch}. "
                         "BCOO batch axes must be a contiguous block of leading dimensions.")
    shape = element.shape[:axis] + (size,) + element.shape[axis:]
    parts = [cont(size, part, axis) for part in (element.data, element.indices)]
    return BCOO.tree_unflatten((shape, element.indices_sorted, element.unique_indices), parts)


_vmappables.register(BCOO, int, _map_elements, _join_elements)


def bcoo_todense(mat: BCOO) -> Array:
    """A sparse array as a dense one; values at duplicate coordinates are added."""
    return _bcoo_todense(mat.data, mat.indices, spinfo=mat._info)


def _bcoo_todense(data: Array, indices: Array, *, spinfo: SparseInfo) -> Array:
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    shape = spinfo.shape[n_batch:]

    def one(data, indices):
        if not n_sparse:
            return data.sum(0, dtype=data.dtype) if data.dtype != bool else data.any(0)
        return jnp.zeros(shape, data.dtype).at[tuple(indices.T)].add(data, mode="drop")
    out = nfold_vmap(one, n_batch)(data, indices)
    return jnp.broadcast_to(out, spinfo.shape)


def bcoo_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCOO:
    """The nonzero elements of an array in the order of their coordinates; the remaining storage is padding."""
    mat = jnp.asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"bcoo_fromdense: n_batch {n_batch} and n_dense {n_dense} are more than the {mat.ndim} dimensions")
    nse = concrete_count(_count_stored_elements(mat, n_batch, n_dense) if nse is None else nse)
    data, indices = _bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _bcoo_fromdense(mat: Array, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32) -> tuple[Array, Array]:
    mat, nse = jnp.asarray(mat), concrete_count(nse)
    end = mat.ndim - n_dense
    shape = mat.shape[n_batch:end]
    mask = (mat != 0).any(axis=tuple(range(end, mat.ndim))) if n_dense else mat != 0

    def one(mat, mask):
        if not shape:  # one coordinate
            kept = jnp.arange(nse) < 1
            return jnp.where(over_dense(kept, n_dense), mat[None], 0), jnp.zeros((nse, 0), index_dtype)
        places = jnp.nonzero(mask, size=nse, fill_value=shape)
        indices = jnp.stack(places, axis=-1).astype(index_dtype)
        return mat.at[tuple(indices.T)].get(mode="fill", fill_value=0), indices
    return nfold_vmap(one, n_batch, broadcasted=False)(mat, mask)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The values of an array at the coordinates of a sparse one; of duplicate coordinates, the first gets the value.

    assume_unique: assumes no duplicates; by default the array's own flag.
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"First argument to bcoo_extract should be a BCOO array. Got type(sparr)={type(sparr)}")
    dense = jnp.asarray(arr)
    if dense.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} a.shape={dense.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    return BCOO((_bcoo_extract(sparr.indices, dense, assume_unique=unique), sparr.indices), shape=sparr.shape,
                indices_sorted=sparr.indices_sorted, unique_indices=sparr.unique_indices)


def _bcoo_extract(indices: Array, arr: ArrayLike, *, assume_unique: bool = True) -> Array:
    arr = jnp.asarray(arr)
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    shape, n_dense = arr.shape[n_batch:n_batch + n_sparse], arr.ndim - n_batch - n_sparse

    def one(indices, arr):
        count = indices.shape[0]
        values = arr.at[tuple(indices.T)].get(mode="fill", fill_value=0) if n_sparse else jnp.broadcast_to(arr, (count, *arr.shape))
        if assume_unique:
            return values
        order, _, fresh = linear_order(indices, shape)
        first = jnp.zeros(count, bool).at[order].set(fresh)
        return jnp.where(over_dense(first, n_dense), values, 0)
    return nfold_vmap(one, n_batch)(indices, arr)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Permutes batch, sparse and dense dimensions, each kind separately."""
    if not isinstance(permutation, (tuple, list, np.ndarray)):
        raise TypeError(f"transpose permutation must be a tuple/list/ndarray, got {type(permutation)}.")
    order = tuple(int(axis) % mat.ndim for axis in permutation)
    if sorted(order) != list(range(mat.ndim)):
        raise TypeError(f"transpose permutation isn't a permutation of operand dimensions, got permutation {tuple(permutation)} for "
                        f"operand shape {mat.shape}.")
    first_dense = mat.n_batch + mat.n_sparse
    for name, group in (("batch", range(mat.n_batch)), ("dense", range(first_dense, mat.ndim))):
        if any(order[axis] not in group for axis in group):
            raise NotImplementedError(f"transpose permutation cannot permute {name} axes with non-{name} axes; got permutation {order}, "
                                      f"with n_batch={mat.n_batch}, n_dense={mat.n_dense}")
    batch = order[:mat.n_batch]
    sparse = [axis - mat.n_batch for axis in order[mat.n_batch:first_dense]]
    dense = [axis - mat.n_sparse + 1 for axis in order[first_dense:]]
    data = mat.data.transpose(*batch, mat.n_batch, *dense)
    indices = mat.indices.transpose(*batch, mat.n_batch, mat.n_batch + 1)[..., np.asarray(sparse, int)]
    return BCOO((data, indices), shape=[mat.shape[axis] for axis in order], unique_indices=mat.unique_indices,
                indices_sorted=mat.indices_sorted and sparse == list(range(mat.n_sparse)))


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Sorts the elements by ascending coordinates."""
    shape = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]

    def one(indices):
        columns = tuple(indices[:, axis] for axis in reversed(range(len(shape))))
        order = jnp.lexsort(columns) if shape else jnp.arange(indices.shape[0])
        return order, indices[order]
    order, indices = nfold_vmap(one, mat.n_batch, broadcasted=False)(mat.indices)
    data = nfold_vmap(lambda data, order: data[order], mat.n_batch)(mat.data, order)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """Drops elements whose values are all zero, and adds values at duplicate coordinates."""
    zero = (mat.data == 0).all(axis=tuple(range(mat.n_batch + 1, mat.data.ndim)))
    zero = zero.all(axis=tuple(axis for axis in range(mat.n_batch) if mat.indices.shape[axis] == 1), keepdims=True)
    beyond = jnp.asarray(mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse], mat.indices.dtype)
    return bcoo_sum_duplicates(BCOO((mat.data, jnp.where(zero[..., None], beyond, mat.indices)), shape=mat.shape), nse=nse)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Adds values at duplicate coordinates; nse, the number of coordinates to store, is counted by default."""
    n_batch, n_sparse = mat.n_batch, mat.n_sparse
    shape = mat.shape[n_batch:n_batch + n_sparse]

    def number(indices):  # the rank of each element's coordinate in ascending order, and the number of coordinates
        order, rows, fresh = linear_order(indices, shape)
        groups = jnp.cumsum(fresh) - 1
        inside = inside_of(rows, shape)
        return jnp.zeros_like(order).at[order].set(jnp.where(inside, groups, indices.shape[0])), groups, rows, jnp.sum(fresh & inside)
    numbers, groups, rows, counts = nfold_vmap(number, n_batch, broadcasted=False)(mat.indices)
    if nse is None:
        if isinstance(counts, jax.core.Tracer):
            raise ValueError("bcoo_sum_duplicates: nse must be specified when using the function within JIT, vmap, and other "
                             "transformations requiring abstract evaluation.")
        nse = int(counts.max()) if counts.size else 0

    def coordinates(groups, rows):
        beyond = jnp.broadcast_to(jnp.asarray(shape, rows.dtype), (nse, n_sparse))
        return beyond.at[groups].set(rows, mode="drop")

    def sums(numbers, data):
        zeros = jnp.zeros((nse,) + data.shape[1:], data.dtype)
        return zeros.at[numbers].add(data, mode="drop")
    indices = nfold_vmap(coordinates, n_batch, broadcasted=False)(groups, rows)
    # Elements past the nse stored coordinates, or out of range, are dropped.
    data = nfold_vmap(sums, n_batch)(jnp.where(numbers < nse, numbers, max(nse, mat.nse)), mat.data)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


_SHAPES = ("bcoo_broadcast_in_dim bcoo_concatenate bcoo_dynamic_slice bcoo_gather bcoo_reduce_sum bcoo_reshape bcoo_rev bcoo_slice "
           "bcoo_squeeze bcoo_update_layout")
_PRODUCTS = ("bcoo_conv_general_dilated bcoo_dot_general bcoo_dot_general_sampled bcoo_multiply_dense bcoo_multiply_sparse "
             "_bcoo_dot_general")
explain_missing(__name__, later={
    **dict.fromkeys(_SHAPES.split(), "capibara.jax.experimental.sparse._shapes"),
    **dict.fromkeys(_PRODUCTS.split(), "capibara.jax.experimental.sparse._products")})
