"""Sparse arrays in other shapes and layouts: broadcast, reshaped, squeezed, sliced, with other batch and dense dimensions."""
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax.numpy as jnp
from capibara.jax.experimental.sparse import BCOO, bcoo_fromdense


class SparseEfficiencyError(ValueError):
    """A change of layout that would store more than the array has."""


class SparseEfficiencyWarning(UserWarning):
    """The same where only a warning is asked for."""


def _coordinates(sizes):
    """All coordinates of an array of these sizes, in row-major order: [count, dimensions]."""
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(-1, len(sizes)) if sizes else np.zeros((1, 0), int)


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None) -> BCOO:
    """The array repeated along new dimensions and those of size 1; new ones before the first sparse dimension are batch dimensions."""
    if sharding is not None:
        raise NotImplementedError("bcoo_broadcast_in_dim: sharding")
    shape, places = tuple(shape), list(broadcast_dimensions)
    if len(places) != mat.ndim or any(mat.shape[i] not in (1, shape[place]) for i, place in enumerate(places)):
        raise ValueError(f"bcoo_broadcast_in_dim: {mat} cannot become {shape} by dimensions {tuple(places)}")
    first_dense = mat.n_batch + mat.n_sparse
    n_batch = max([0] + [1 + place for place in places[:mat.n_batch]] + places[mat.n_batch:first_dense][:1])
    n_dense = len(shape) - min(places[first_dense:]) if mat.n_dense else 0
    end = len(shape) - n_dense
    if any(not n_batch <= place < end for place in places[mat.n_batch:first_dense]):
        raise NotImplementedError("bcoo_broadcast_in_dim: batch, sparse and dense dimensions must stay in this order")
    data, indices = mat.data, mat.indices
    # Batch and dense dimensions: as those of any array.
    batch = [places.index(axis) if axis in places[:mat.n_batch] else None for axis in range(n_batch)]
    dense = [places.index(axis) if axis in places[first_dense:] else None for axis in range(end, len(shape))]
    batch_sizes = [1 if axis is None else data.shape[axis] for axis in batch]
    dense_sizes = [1 if axis is None else mat.shape[axis] for axis in dense]
    data = data.reshape(*batch_sizes, mat.nse, *dense_sizes)
    data = jnp.broadcast_to(data, shape[:n_batch] + (mat.nse,) + shape[end:])
    indices = indices.reshape(*(1 if axis is None else indices.shape[axis] for axis in batch), mat.nse, mat.n_sparse)
    indices = jnp.broadcast_to(indices, shape[:n_batch] + (mat.nse, mat.n_sparse))
    # Sparse dimensions: each element once for every coordinate of those that grow.
    source = {axis: places.index(axis) for axis in range(n_batch, end) if axis in places}
    grown = [axis for axis in range(n_batch, end) if axis not in source or mat.shape[source[axis]] != shape[axis]]
    grid = _coordinates([shape[axis] for axis in grown])
    indices = jnp.repeat(indices, len(grid), axis=-2, total_repeat_length=mat.nse * len(grid))
    data = jnp.repeat(data, len(grid), axis=n_batch, total_repeat_length=mat.nse * len(grid))
    grid = np.tile(grid, (mat.nse, 1)).astype(indices.dtype)
    columns = []
    for axis in range(n_batch, end):
        kept = indices[..., source[axis] - mat.n_batch] if axis in source else None
        if axis not in grown:
            columns.append(kept)
            continue
        column = jnp.broadcast_to(grid[:, grown.index(axis)], indices.shape[:-1])
        columns.append(column if kept is None else jnp.where(kept < 1, column, jnp.asarray(shape[axis], indices.dtype)))
    indices = jnp.stack(columns, -1) if columns else indices[..., :0]
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


def _groups(old, new, counts):
    """Where new sizes divide into batch, sparse and dense ones with as many elements as the old groups have."""
    ends, start = [], 0
    for end in np.cumsum(counts)[:2]:
        want, place = math.prod(old[:end]), start
        while math.prod(new[:place]) < want and place < len(new):
            place += 1
        if math.prod(new[:place]) != want:
            raise ValueError(f"bcoo_reshape: the sizes {tuple(new)} mix batch, sparse and dense dimensions of {tuple(old)}")
        ends.append(place if end else 0)
        start = place
    return ends


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None) -> BCOO:
    """The elements in row-major order in another shape; batch, sparse and dense dimensions stay among themselves."""
    if (dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim))) or sharding is not None:
        raise NotImplementedError("bcoo_reshape: dimensions and sharding")
    new = tuple(new_sizes)
    if math.prod(new) != mat.size:
        raise ValueError(f"bcoo_reshape: cannot reshape {mat.shape} into {new}")
    if not mat.n_dense:
        n_batch, end = _groups(mat.shape, new, (mat.n_batch, mat.n_sparse, 0))[0], len(new)
    else:
        n_batch, end = _groups(mat.shape, new, (mat.n_batch, mat.n_sparse, mat.n_dense))
    old_sparse = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]
    inside = jnp.ones(mat.indices.shape[:-1], bool)
    position = jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype)
    for axis, size in enumerate(old_sparse):
        position = position * size + mat.indices[..., axis]
        inside = inside & (mat.indices[..., axis] < size)
    columns = jnp.unravel_index(jnp.where(inside, position, 0), new[n_batch:end]) if end > n_batch else ()
    columns = [jnp.where(inside, column, size).astype(mat.indices.dtype) for column, size in zip(columns, new[n_batch:end])]
    indices = jnp.stack(columns, -1) if columns else mat.indices[..., :0]
    whole = mat.shape[:mat.n_batch]
    data = jnp.broadcast_to(mat.data, whole + mat.data.shape[mat.n_batch:]).reshape(new[:n_batch] + (mat.nse,) + new[end:])
    indices = jnp.broadcast_to(indices, whole + indices.shape[mat.n_batch:]).reshape(new[:n_batch] + (mat.nse, end - n_batch))
    return BCOO((data, indices), shape=new, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Dimensions of size 1 left out."""
    axes = {int(axis) % arr.ndim for axis in dimensions}
    if any(arr.shape[axis] != 1 for axis in axes):
        raise ValueError(f"bcoo_squeeze: dimensions {tuple(dimensions)} of {arr} must have size 1")
    first_dense = arr.n_batch + arr.n_sparse
    batch = tuple(axis for axis in axes if axis < arr.n_batch)
    dense = tuple(axis - arr.n_sparse + 1 for axis in axes if axis >= first_dense)
    left = [axis - arr.n_batch for axis in range(arr.n_batch, first_dense) if axis not in axes]
    data = jnp.squeeze(arr.data, batch + dense)
    indices = jnp.squeeze(arr.indices[..., np.asarray(left, int)], batch)
    return BCOO((data, indices), shape=[size for axis, size in enumerate(arr.shape) if axis not in axes],
                indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> BCOO:
    """A window of the array; elements outside of it become padding."""
    strides = (1,) * mat.ndim if strides is None else tuple(strides)
    windows = [slice(start, limit, stride) for start, limit, stride in zip(start_indices, limit_indices, strides, strict=True)]
    shape = tuple(len(range(*window.indices(size))) for window, size in zip(windows, mat.shape))
    first_dense = mat.n_batch + mat.n_sparse
    batch = tuple(windows[:mat.n_batch])
    data = mat.data[(*(window if size != 1 else slice(None) for window, size in zip(batch, mat.data.shape)), slice(None),
                     *windows[first_dense:])]
    indices = mat.indices[tuple(window if size != 1 else slice(None) for window, size in zip(batch, mat.indices.shape))]
    columns, inside = [], True
    for axis in range(mat.n_batch, first_dense):
        column, window = indices[..., axis - mat.n_batch], windows[axis]
        start, limit, stride = window.indices(mat.shape[axis])
        inside = inside & (column >= start) & (column < limit) & ((column - start) % stride == 0)
        columns.append((column - start) // stride)
    if columns:
        sizes = shape[mat.n_batch:first_dense]
        columns = [jnp.where(inside, column, size).astype(indices.dtype) for column, size in zip(columns, sizes)]
        indices = jnp.stack(columns, -1)
        data = jnp.where(inside.reshape(inside.shape + (1,) * mat.n_dense), data, 0)
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with the order of some dimensions reversed."""
    axes = {int(axis) % operand.ndim for axis in dimensions}
    first_dense = operand.n_batch + operand.n_sparse
    data, indices = operand.data, operand.indices
    batch = [axis for axis in axes if axis < operand.n_batch]
    data = jnp.flip(data, batch + [axis - operand.n_sparse + 1 for axis in axes if axis >= first_dense])
    indices = jnp.flip(indices, batch)
    for axis in axes & set(range(operand.n_batch, first_dense)):
        size, column = operand.shape[axis], indices[..., axis - operand.n_batch]
        indices = indices.at[..., axis - operand.n_batch].set(jnp.where(column < size, size - 1 - column, size).astype(indices.dtype))
    return BCOO((data, indices), shape=operand.shape, unique_indices=operand.unique_indices)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The same array with other numbers of batch and dense dimensions."""
    n_batch = mat.n_batch if n_batch is None else n_batch
    n_dense = mat.n_dense if n_dense is None else n_dense
    if n_batch + n_dense > mat.ndim or n_batch < 0 or n_dense < 0:
        raise ValueError(f"bcoo_update_layout: n_batch={n_batch}, n_dense={n_dense} are more than the {mat.ndim} dimensions")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', None].")
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        if on_inefficient and mat.nse:
            text = f"For matrix of shape {mat.shape}, increasing n_batch or n_dense from {(mat.n_batch, mat.n_dense)} to " \
                   f"{(n_batch, n_dense)} may store more than the nonzero elements."
            if on_inefficient == "error":
                raise SparseEfficiencyError(text + ' Use on_inefficient=None or "warn" to proceed.')
            warnings.warn(text, SparseEfficiencyWarning, stacklevel=2)
        sparse = mat.shape[n_batch:mat.ndim - n_dense]
        return bcoo_fromdense(mat.todense(), nse=min(mat.nse * max(1, math.prod(mat.shape[n_batch:mat.n_batch])), math.prod(sparse)),
                              n_batch=n_batch, n_dense=n_dense, index_dtype=mat.indices.dtype)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    return mat


def _dense_to_sparse(mat):
    """The first dense dimension becomes the last sparse one: every element of it a coordinate."""
    size = mat.shape[mat.n_batch + mat.n_sparse]
    data = mat.data.reshape(mat.data.shape[:mat.n_batch] + (mat.nse * size,) + mat.data.shape[mat.n_batch + 2:])
    indices = jnp.repeat(mat.indices, size, axis=-2, total_repeat_length=mat.nse * size)
    column = jnp.broadcast_to(jnp.tile(jnp.arange(size, dtype=indices.dtype), mat.nse)[:, None], indices.shape[:-1] + (1,))
    return BCOO((data, jnp.concatenate([indices, column], -1)), shape=mat.shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


def _batch_to_sparse(mat):
    """The last batch dimension becomes the first sparse one."""
    axis, size = mat.n_batch - 1, mat.shape[mat.n_batch - 1]
    batch = mat.shape[:axis]
    data = jnp.broadcast_to(mat.data, batch + (size,) + mat.data.shape[mat.n_batch:])
    indices = jnp.broadcast_to(mat.indices, batch + (size,) + mat.indices.shape[mat.n_batch:])
    column = jnp.broadcast_to(jnp.arange(size, dtype=indices.dtype)[:, None, None], batch + (size, mat.nse, 1))
    indices = jnp.concatenate([column, indices], -1).reshape(batch + (size * mat.nse, mat.n_sparse + 1))
    data = data.reshape(batch + (size * mat.nse,) + data.shape[mat.n_batch + 1:])
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)
