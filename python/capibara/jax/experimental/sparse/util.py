"""jax.experimental.sparse.util: descriptions of sparse arrays, counts of their elements, and functions mapped over batch dimensions."""
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.typing import ArrayLike


class SparseEfficiencyError(ValueError):
    """A change of layout that would store more than the array has."""


class SparseEfficiencyWarning(UserWarning):
    """The same as a warning, if only that is requested."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """jax's warning that cuSPARSE cannot be called; never issued here."""


class SparseInfo(NamedTuple):
    """The properties of a sparse array besides its buffers."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


_NO_COUNT = ("the number of elements to keep, nse, must be known while a function is traced: give nse= a number that does not depend on "
             "the array's values")


def concrete_count(nse: Any) -> int:
    """The number of elements to store, as a concrete integer."""
    if isinstance(nse, jax.core.Tracer):
        return jax.core.concrete_or_error(operator.index, nse, _NO_COUNT)
    return int(nse)


def nfold_vmap(fun: Callable[..., Any], N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable[..., Any]:
    """A function mapped over N leading dimensions; if `broadcasted`, dimensions of size 1 match any size."""
    for _ in range(N):
        fun = broadcasting_vmap(fun, in_axes) if broadcasted else jax.vmap(fun, in_axes=in_axes)
    return fun


def broadcasting_vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """vmap that broadcasts axes of size 1 to the size of the others."""
    def mapped(*args):
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        sizes = {arg.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None}
        if len(sizes - {1}) > 1:
            raise ValueError(f"broadcasting_vmap: the mapped axes have different sizes: {sorted(sizes)}")
        args = list(args)
        if sizes - {1}:
            for i, axis in enumerate(axes):
                if axis is not None and args[i].shape[axis] == 1:
                    args[i], axes[i] = jnp.squeeze(args[i], axis), None
        return jax.vmap(fun, in_axes=tuple(axes), out_axes=out_axes)(*args)
    return mapped


def linear_order(indices: Array, shape: Sequence[int]) -> tuple[Array, Array, Array]:
    """Sorts coordinates [nse, dimensions]: (permutation, sorted coordinates, which of them differ from the previous one).

    All out-of-range coordinates count as one, after the last.
    """
    beyond = jnp.asarray(shape, indices.dtype).reshape(1, -1)
    indices = jnp.where((indices >= beyond).any(-1, keepdims=True), beyond, indices)
    if indices.shape[-1]:
        order = jnp.lexsort(tuple(indices[:, axis] for axis in reversed(range(indices.shape[-1]))))
    else:
        order = jnp.arange(indices.shape[0])
    rows = indices[order]
    first = jnp.ones((min(1, len(rows)),), bool)
    return order, rows, jnp.concatenate([first, (rows[1:] != rows[:-1]).any(-1)])


def inside_of(indices: Array, shape: Sequence[int]) -> Array:
    """A mask of the coordinates [..., dimensions] that are in range."""
    return (indices < jnp.asarray(shape, indices.dtype).reshape((1,) * (indices.ndim - 1) + (-1,))).all(-1)


def over_dense(mask: Array, n_dense: int) -> Array:
    """Broadcasts a mask of elements over their dense dimensions."""
    return mask.reshape(mask.shape + (1,) * n_dense)


def remaining(axes: Sequence[int], *taken: Sequence[int]) -> list[int]:
    """The axes that are in none of the lists."""
    return [axis for axis in axes if not any(axis in some for some in taken)]


def rows_of_pointers(indptr: Array, nse: int, dtype: Any) -> Array:
    """The row of each of nse elements, from row pointers; past the last pointer, the number of rows.

    It is counted how many rows start at each element: the sum over the elements up to k is the number of rows that start by then.
    """
    starts = jnp.zeros(nse + 1, dtype).at[indptr].add(1, mode="drop")
    return jnp.cumsum(starts[:nse], dtype=dtype) - 1


def _csr_to_coo(indices: Array, indptr: Array) -> tuple[Array, Array]:
    """The rows and columns of elements stored by rows."""
    return rows_of_pointers(indptr, indices.shape[0], indices.dtype), indices


def _count_stored_elements_per_batch(mat: ArrayLike, n_batch: int = 0, n_dense: int = 0) -> Array:
    """The number of nonzero elements of each batch."""
    mask = jnp.asarray(mat) != 0
    mask = mask.any(tuple(range(mask.ndim - n_dense, mask.ndim))) if n_dense else mask
    return mask.sum(tuple(range(n_batch, mask.ndim)))


def _count_stored_elements(mat: ArrayLike, n_batch: int = 0, n_dense: int = 0) -> Array:
    """The number of elements to store for each batch."""
    return _count_stored_elements_per_batch(mat, n_batch, n_dense).max(initial=0)


def dot_shape(left: Sequence[int], right: Sequence[int], dimension_numbers: Any) -> tuple[int, ...]:
    """The result shape of lax.dot_general for operands of these shapes; checks the arguments."""
    def struct(shape):
        return jax.ShapeDtypeStruct(tuple(shape), np.float32)
    return jax.eval_shape(lambda x, y: jax.lax.dot_general(x, y, dimension_numbers), struct(left), struct(right)).shape


explain_missing(__name__)
