"""jax.experimental.sparse: arrays kept as the coordinates and values of their nonzero elements (BCOO).

Products, sums and conversions are ordinary programs of gathers and scatters, so that every transformation serves them; the
derivative is that of the kept values. The compressed formats of jax are not here.
"""
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.lax import PrecisionLike
from capibara.jax.typing import ArrayLike, DTypeLike

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
__all__ = ["BCOO", "BCSR", "JAXSparse", "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_eliminate_zeros",
           "bcoo_fromdense", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice",
           "bcoo_sort_indices", "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
           "bcsr_dot_general", "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense", "empty", "eye", "random_bcoo", "sparsify",
           "todense"]


class JAXSparse:
    """The base of sparse arrays."""

    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]


def _with_batches(n_batch):
    """A function of data and indices without batch dimensions, over n_batch leading ones."""
    def wrap(function):
        for _ in range(n_batch):
            function = jax.vmap(function)
        return function
    return wrap


@jax.tree_util.register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: data[*batch, nse, *dense] stands at indices[*batch, nse, sparse]; indices out of range stand for nothing."""

    def __init__(self, args: tuple[ArrayLike, ArrayLike], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False) -> None:
        self.data, self.indices = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self._check()

    def _check(self):
        data, indices = self.data, self.indices
        if indices.ndim < 2 or not jnp.issubdtype(indices.dtype, jnp.integer):
            raise ValueError(f"BCOO: indices must be integers [..., nse, sparse dimensions], got {indices.aval}")
        if data.ndim < indices.ndim - 1 or data.shape[self.n_batch] != indices.shape[-2] or self.n_dense < 0:
            raise ValueError(f"BCOO: data {data.aval} and indices {indices.aval} are not those of an array of shape {self.shape}")

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: len(self.shape) - self.n_batch - self.n_sparse)
    nse = property(lambda self: self.indices.shape[-2])
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: self.transpose())

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0,
                  n_batch: int = 0) -> "BCOO":
        """The nonzero elements of an array; nse, how many to keep, is counted where it is not given."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0) -> "BCOO":
        """A matrix of scipy.sparse."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = np.column_stack((mat.row, mat.col)).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    def todense(self) -> Array:
        """The array with all its elements."""
        return bcoo_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCOO":
        """Each coordinate once, without those where all values are zero unless they are to be kept."""
        return bcoo_eliminate_zeros(self, nse=nse) if remove_zeros else bcoo_sum_duplicates(self, nse=nse)

    def sort_indices(self) -> "BCOO":
        """Coordinates in ascending order."""
        return bcoo_sort_indices(self)

    def transpose(self, axes: Sequence[int] | None = None) -> "BCOO":
        """Dimensions in another order."""
        return bcoo_transpose(self, permutation=tuple(range(self.ndim))[::-1] if axes is None else axes)

    def sum(self, axis: int | Sequence[int] | None = None) -> "BCOO | Array":
        """Sums over dimensions, as a sparse array; over all of them, as a number."""
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        result = bcoo_reduce_sum(self, axes=tuple(axes))
        return result if result.ndim else result.todense()

    def astype(self, dtype: DTypeLike) -> "BCOO":
        """The elements in another type."""
        return self._of(self.data.astype(dtype))

    def block_until_ready(self) -> "BCOO":
        """Waits for both arrays."""
        return jax.block_until_ready(self)

    def _of(self, data):
        return BCOO((data, self.indices), shape=self.shape, indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    def __neg__(self):
        return self._of(-self.data)

    def __mul__(self, other):
        if isinstance(other, BCOO):
            return bcoo_multiply_sparse(self, other)
        return self._of(self.data * other) if jnp.ndim(other) == 0 else self._of(bcoo_multiply_dense(self, other))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self * (1 / jnp.asarray(other))

    def __add__(self, other):
        if isinstance(other, BCOO):
            return _concatenated([self, other]).sum_duplicates(nse=self.nse + other.nse)
        return self.todense() + other

    __radd__ = __add__

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __matmul__(self, other):
        if not isinstance(other, BCOO) and jnp.ndim(other) == 0:
            raise ValueError("BCOO @: the right operand must have at least one dimension")
        if isinstance(other, BCOO):
            return BCOO.fromdense(self.todense() @ other.todense(), nse=min(self.nse * other.nse, math.prod(
                self.shape[:-1] + other.shape[1:])))
        if self.ndim > 2 and jnp.ndim(other) > 2:
            return jnp.matmul(self.todense(), other)
        out = bcoo_dot_general(self, other, dimension_numbers=(((self.ndim - 1,), (max(jnp.ndim(other) - 2, 0),)), ((), ())))
        # As jnp.matmul: the leading dimensions of the right operand come before the rows of the left one.
        return jnp.moveaxis(out, 0, -2) if self.ndim == 2 and jnp.ndim(other) > 2 else out

    def __rmatmul__(self, other):
        other = jnp.asarray(other)
        if self.ndim > 2:
            return jnp.matmul(other, self.todense())
        return bcoo_dot_general(other, self, dimension_numbers=(((other.ndim - 1,), (max(self.ndim - 2, 0),)), ((), ())))

    def __getitem__(self, index):
        raise NotImplementedError("BCOO[...]: index the array that todense() gives")

    def __repr__(self):
        if not hasattr(self.indices, "ndim") or not hasattr(self.data, "dtype"):  # a tree of something else
            return f"{type(self).__name__}(<invalid>)"
        name = f"{type(self).__name__}({self.dtype}{list(self.shape)}, nse={self.nse}"
        extra = "".join(f", {what}={value}" for what, value in (("n_batch", self.n_batch), ("n_dense", self.n_dense)) if value)
        return name + extra + ")"

    def tree_flatten(self) -> tuple[tuple[Array, Array], tuple[tuple[int, ...], bool, bool]]:
        """The two arrays; the rest is fixed."""
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, fixed: tuple[tuple[int, ...], bool, bool], children: Sequence[object]) -> "BCOO":
        """The opposite of tree_flatten; the leaves may be anything."""
        self = object.__new__(cls)
        self.data, self.indices = children
        self.shape, self.indices_sorted, self.unique_indices = fixed
        return self


def bcoo_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCOO:
    """The nonzero elements of an array in the order of their coordinates; what is kept beyond them is padding."""
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_sparse < 0:
        raise ValueError(f"bcoo_fromdense: n_batch {n_batch} and n_dense {n_dense} are more than the {mat.ndim} dimensions")
    mask = (mat != 0).any(axis=tuple(range(mat.ndim - n_dense, mat.ndim))) if n_dense else mat != 0
    if nse is None:
        counts = mask.sum(axis=tuple(range(n_batch, mask.ndim)))
        nse = int(counts.max()) if counts.size else 0
    shape = mat.shape[n_batch:n_batch + n_sparse]

    def one(mat, mask):
        places = jnp.nonzero(mask, size=nse, fill_value=shape) if n_sparse else (jnp.zeros((nse, 0), index_dtype),)
        indices = jnp.stack(places, axis=-1).astype(index_dtype) if n_sparse else places[0]
        data = mat.at[tuple(indices.T)].get(mode="fill", fill_value=0) if n_sparse else jnp.broadcast_to(mat, (nse,) + mat.shape)
        return data, indices
    data, indices = _with_batches(n_batch)(one)(mat, mask)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Array:
    """A sparse array with all its elements; values at one coordinate are added."""
    shape = mat.shape[mat.n_batch:]

    def one(data, indices):
        if not mat.n_sparse:
            return data.sum(0)
        return jnp.zeros(shape, data.dtype).at[tuple(indices.T)].add(data, mode="drop")
    data = jnp.broadcast_to(mat.data, mat.shape[:mat.n_batch] + mat.data.shape[mat.n_batch:])
    indices = jnp.broadcast_to(mat.indices, mat.shape[:mat.n_batch] + mat.indices.shape[mat.n_batch:])
    return _with_batches(mat.n_batch)(one)(data, indices)


def _linear(indices, shape):
    """Coordinates as positions in row-major order; all those out of range as one beyond the last."""
    position, inside = 0, True
    for axis, size in enumerate(shape):
        position = position * size + indices[..., axis]
        inside = inside & (indices[..., axis] < size)
    return jnp.where(inside, position, math.prod(shape))


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The elements in ascending order of their coordinates."""
    shape = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]

    def one(data, indices):
        order = jnp.argsort(_linear(indices, shape), stable=True)
        return data[order], indices[order]
    data, indices = _with_batches(mat.n_batch)(one)(mat.data, mat.indices)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """Values at one coordinate added, where one of them is not zero."""
    zero = (mat.data == 0).all(axis=tuple(range(mat.n_batch + 1, mat.data.ndim)))
    zero = zero.all(axis=tuple(axis for axis in range(mat.n_batch) if mat.indices.shape[axis] == 1), keepdims=True)
    outside = jnp.asarray(mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse], mat.indices.dtype)
    return bcoo_sum_duplicates(BCOO((mat.data, jnp.where(zero[..., None], outside, mat.indices)), shape=mat.shape), nse=nse)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Values at one coordinate added; nse, how many coordinates to keep, is counted where it is not given."""
    shape = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]
    total = math.prod(shape)
    if not shape:  # one coordinate
        kept = 1 if nse is None else nse
        pads = [(0, kept - 1 if axis == mat.n_batch else 0) for axis in range(mat.data.ndim)]
        parts = jnp.pad(mat.data.sum(mat.n_batch, keepdims=True), pads), jnp.repeat(mat.indices[..., :1, :], kept, -2)
        return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)
    if nse is None:
        def count(indices):
            positions = jnp.sort(_linear(indices, shape))
            fresh = jnp.concatenate([jnp.ones(1, bool), positions[1:] != positions[:-1]]) if len(positions) else positions
            return jnp.sum(fresh & (positions < total))
        counts = _with_batches(mat.n_batch)(count)(mat.indices)
        nse = int(counts.max()) if counts.size else 0

    def one(data, indices):
        positions, inverse = jnp.unique(_linear(indices, shape), size=nse + 1, fill_value=total, return_inverse=True)
        sums = jnp.zeros((nse + 1,) + data.shape[1:], data.dtype).at[inverse].add(data, mode="drop")[:nse]
        positions = positions[:nse]
        places = jnp.stack(jnp.unravel_index(jnp.minimum(positions, max(total - 1, 0)), shape), axis=-1).astype(indices.dtype)
        padding = positions >= total
        sums = jnp.where(padding.reshape(padding.shape + (1,) * (sums.ndim - 1)), 0, sums)
        return sums, jnp.where(padding[:, None], jnp.asarray(shape, indices.dtype), places)
    batch = np.broadcast_shapes(mat.data.shape[:mat.n_batch], mat.indices.shape[:mat.n_batch])
    data, indices = (jnp.broadcast_to(part, batch + part.shape[mat.n_batch:]) for part in (mat.data, mat.indices))
    data, indices = _with_batches(mat.n_batch)(one)(data, indices)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Dimensions in another order; batch, sparse and dense ones stay among themselves."""
    order = tuple(int(axis) % mat.ndim for axis in permutation)
    groups = [range(mat.n_batch), range(mat.n_batch, mat.n_batch + mat.n_sparse), range(mat.n_batch + mat.n_sparse, mat.ndim)]
    if sorted(order) != list(range(mat.ndim)) or any(order[axis] not in group for group in groups for axis in group):
        raise NotImplementedError(f"bcoo_transpose: the permutation {tuple(permutation)} must not mix batch, sparse and dense dimensions")
    batch = order[:mat.n_batch]
    sparse = [axis - mat.n_batch for axis in order[mat.n_batch:mat.n_batch + mat.n_sparse]]
    dense = [axis - mat.n_sparse + 1 for axis in order[mat.n_batch + mat.n_sparse:]]
    data = mat.data.transpose(*batch, mat.n_batch, *dense)
    indices = mat.indices.transpose(*batch, mat.n_batch, mat.n_batch + 1)[..., np.asarray(sparse, int)]
    return BCOO((data, indices), shape=[mat.shape[axis] for axis in order], unique_indices=mat.unique_indices)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Sums over dimensions, as a sparse array in which coordinates may be repeated."""
    axes = {int(axis) % mat.ndim for axis in axes}
    n_batch, first_dense = mat.n_batch, mat.n_batch + mat.n_sparse
    sizes = mat.shape[n_batch:first_dense]
    inside = _linear(mat.indices, sizes) < math.prod(sizes) if sizes else jnp.ones(mat.indices.shape[:-1], bool)
    data = jnp.where(inside.reshape(inside.shape + (1,) * mat.n_dense), mat.data, 0)
    data = data.sum(tuple(axis - mat.n_sparse + 1 for axis in axes if axis >= first_dense))
    left = [axis - n_batch for axis in range(n_batch, first_dense) if axis not in axes]
    indices = mat.indices[..., np.asarray(left, int)]
    batch = [axis for axis in range(n_batch) if axis in axes]
    if batch:  # the elements of all batches that are summed stand one after the other
        data, indices = (jnp.broadcast_to(part, mat.shape[:n_batch] + part.shape[n_batch:]) for part in (data, indices))
        kept, count = n_batch - len(batch), math.prod(mat.shape[axis] for axis in batch)
        data, indices = (jnp.moveaxis(part, batch, range(kept, n_batch)) for part in (data, indices))
        data, indices = (part.reshape(part.shape[:kept] + (count * mat.nse,) + part.shape[n_batch + 1:]) for part in (data, indices))
    return BCOO((data, indices), shape=[size for axis, size in enumerate(mat.shape) if axis not in axes])


def bcoo_multiply_dense(mat: BCOO, dense: ArrayLike) -> Array:
    """The data of the product of a sparse array with a dense one that broadcasts to its shape."""
    whole = jnp.broadcast_to(dense, mat.shape)

    def one(data, indices, whole):
        return data * (whole.at[tuple(indices.T)].get(mode="fill", fill_value=0) if mat.n_sparse else whole)
    batch = mat.shape[:mat.n_batch]
    data, indices = (jnp.broadcast_to(part, batch + part.shape[mat.n_batch:]) for part in (mat.data, mat.indices))
    return _with_batches(mat.n_batch)(one)(data, indices, whole)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of two sparse arrays of one shape, where the left one has elements."""
    if lhs.shape != rhs.shape:
        raise ValueError(f"bcoo_multiply_sparse: shapes {lhs.shape} and {rhs.shape} must be equal")
    lhs = lhs.sum_duplicates(nse=lhs.nse)
    return lhs._of(bcoo_multiply_dense(lhs, rhs.todense()))


def bcoo_dot_general(lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *, dimension_numbers: DotDimensionNumbers,
                     precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The dense result of a contraction of a sparse array with a dense one, on either side; batch dimensions are its own."""
    (left, right), batch = dimension_numbers
    if isinstance(rhs, BCOO) and not isinstance(lhs, BCOO):
        lhs = jnp.asarray(lhs)
        out = bcoo_dot_general(rhs, lhs, dimension_numbers=((right, left), batch[::-1]), preferred_element_type=preferred_element_type)
        shared = len(batch[0])
        free = rhs.ndim - len(right) - shared
        return jnp.moveaxis(out, range(shared, shared + free), range(out.ndim - free, out.ndim))
    if len(batch[0]) and isinstance(lhs, BCOO) and not isinstance(rhs, BCOO):
        return _batched_dot_general(lhs, jnp.asarray(rhs), (left, right), batch, preferred_element_type)
    if isinstance(rhs, BCOO) or not isinstance(lhs, BCOO):
        raise TypeError("bcoo_dot_general: one operand must be sparse and the other dense")
    if lhs.n_batch or lhs.n_dense:
        raise NotImplementedError("bcoo_dot_general: arrays with batch or dense dimensions")
    rhs = jnp.asarray(rhs)
    for a, b in zip(left, right):
        if lhs.shape[a] != rhs.shape[b]:
            raise TypeError(f"bcoo_dot_general: dimension {a} of {lhs} and dimension {b} of {rhs.aval} must have one size")
    dtype = preferred_element_type or jnp.result_type(lhs.dtype, rhs.dtype)
    free = [axis for axis in range(lhs.ndim) if axis not in left]
    rows = jnp.moveaxis(rhs, right, range(len(right))).astype(dtype)
    rows = rows.at[tuple(lhs.indices[:, axis] for axis in left)].get(mode="fill", fill_value=0)
    rows = jnp.broadcast_to(rows, (lhs.nse,) + rhs.shape) if not left else rows
    terms = rows * lhs.data.astype(dtype).reshape((-1,) + (1,) * (rows.ndim - 1))
    shape = tuple(lhs.shape[axis] for axis in free) + terms.shape[1:]
    if not free:
        return terms.sum(0)
    return jnp.zeros(shape, dtype).at[tuple(lhs.indices[:, axis] for axis in free)].add(terms, mode="drop")


def _batched_dot_general(lhs, rhs, contracted, batch, dtype):
    count = len(batch[0])
    if sorted(batch[0]) != list(range(count)) or lhs.n_batch != count or lhs.n_dense:
        raise NotImplementedError("bcoo_dot_general: batch dimensions must be those of the sparse array's layout, and none dense")
    order = [batch[1][list(batch[0]).index(axis)] for axis in range(count)]
    rest = [axis for axis in range(rhs.ndim) if axis not in order]
    right = [rest.index(axis) for axis in contracted[1]]
    left = [axis - count for axis in contracted[0]]

    def one(data, indices, rhs):
        mat = BCOO((data, indices), shape=lhs.shape[count:])
        return bcoo_dot_general(mat, rhs, dimension_numbers=((left, right), ((), ())), preferred_element_type=dtype)
    sizes = lhs.shape[:count]
    data, indices = (jnp.broadcast_to(part, sizes + part.shape[count:]) for part in (lhs.data, lhs.indices))
    out = _with_batches(count)(one)(data, indices, rhs.transpose(*order, *rest))
    return jnp.moveaxis(out, range(count), batch[0]) if list(batch[0]) != list(range(count)) else out


def _concatenated(arrays):
    data = jnp.concatenate([array.data.astype(jnp.result_type(*(a.dtype for a in arrays))) for array in arrays], arrays[0].n_batch)
    return BCOO((data, jnp.concatenate([array.indices for array in arrays], -2)), shape=arrays[0].shape)


_SHAPES = ("SparseEfficiencyError SparseEfficiencyWarning bcoo_broadcast_in_dim bcoo_reshape bcoo_rev bcoo_slice bcoo_squeeze "
           "bcoo_update_layout")
explain_missing(__name__, later={
    **dict.fromkeys(_SHAPES.split(), "capibara.jax.experimental._sparse_shapes"),
    **{name: "capibara.jax.experimental._sparse_rows" for name in __all__ if name.lower().startswith("bcsr")},
    **dict.fromkeys(("todense", "bcoo_concatenate", "empty", "eye", "random_bcoo"), "capibara.jax.experimental._sparse_creation"),
    "sparsify": "capibara.jax.experimental._sparsify"})
