"""Shape and layout operations on sparse arrays: broadcast, concatenate, reshape, slice, sum, change of batch and dense dimensions."""
import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.experimental.sparse.bcoo import BCOO, bcoo_fromdense, bcoo_sum_duplicates, bcoo_transpose
from capibara.jax.experimental.sparse.util import SparseEfficiencyError, SparseEfficiencyWarning, inside_of, over_dense
from capibara.jax.typing import ArrayLike


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
    # Dimensions before the first sparse or dense one are batch dimensions, those from the first dense one on are dense.
    n_batch = min(places[mat.n_batch:], default=len(shape))
    n_dense = len(shape) - min(places[first_dense:]) if mat.n_dense else 0
    end = len(shape) - n_dense
    if any(place >= n_batch for place in places[:mat.n_batch]):
        raise ValueError("Cannot mix batch and sparse dimensions during broadcast_in_dim")
    if any(place >= end for place in places[mat.n_batch:first_dense]):
        raise ValueError("Cannot mix sparse and dense dimensions during broadcast_in_dim")
    data, indices = mat.data, mat.indices
    # Batch and dense dimensions: as for dense arrays.
    batch = [places.index(axis) if axis in places[:mat.n_batch] else None for axis in range(n_batch)]
    dense = [places.index(axis) if axis in places[first_dense:] else None for axis in range(end, len(shape))]
    batch_sizes = [1 if axis is None else data.shape[axis] for axis in batch]
    dense_sizes = [1 if axis is None else mat.shape[axis] for axis in dense]
    data = data.reshape(*batch_sizes, mat.nse, *dense_sizes)
    data = jnp.broadcast_to(data, shape[:n_batch] + (mat.nse,) + shape[end:])
    indices = indices.reshape(*(1 if axis is None else indices.shape[axis] for axis in batch), mat.nse, mat.n_sparse)
    indices = jnp.broadcast_to(indices, shape[:n_batch] + (mat.nse, mat.n_sparse))
    # Sparse dimensions: each element is repeated for every coordinate of the broadcast dimensions.
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


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Concatenates sparse arrays along a batch or a sparse dimension."""
    operands, dimension = list(operands), operator.index(dimension)
    if not operands or not all(isinstance(mat, BCOO) for mat in operands):
        raise ValueError("bcoo_concatenate: expected operands to be a sequence of BCOO arrays. "
                         f"Got {[type(mat).__name__ for mat in operands]}")
    if len({mat.n_batch for mat in operands}) > 1:  # for example x[None], which has a batch dimension, with others
        operands = [bcoo_update_layout(mat, n_batch=min(mat.n_batch for mat in operands)) for mat in operands]
    first = operands[0]
    if len({(mat.n_batch, mat.n_dense, mat.ndim) for mat in operands}) > 1:
        raise ValueError(f"bcoo_concatenate requires inputs to have matching numbers of dimensions, and of dense ones; got {operands}")
    if not 0 <= dimension < first.ndim or any(size != first.shape[axis] for mat in operands for axis, size in enumerate(mat.shape)
                                              if axis != dimension):
        raise TypeError(f"bcoo_concatenate: shapes {[mat.shape for mat in operands]} must be equal but for dimension {dimension}")
    n_batch, n_sparse = first.n_batch, first.n_sparse
    if dimension >= n_batch + n_sparse:
        raise NotImplementedError("Concatenation along dense dimensions.")
    sizes = [mat.shape[dimension] for mat in operands]
    shape = tuple(sum(sizes) if axis == dimension else size for axis, size in enumerate(first.shape))
    dtype = jnp.result_type(*(mat.dtype for mat in operands))
    parts = []
    for mat in operands:  # broadcast all batch dimensions to the result's, except the concatenated one
        whole = mat.shape[:n_batch]
        parts.append((jnp.broadcast_to(mat.data, whole + mat.data.shape[n_batch:]).astype(dtype),
                      jnp.broadcast_to(mat.indices, whole + mat.indices.shape[n_batch:])))
    unique = all(mat.unique_indices for mat in operands)
    if dimension < n_batch:
        nse = max(mat.nse for mat in operands)
        padded = [_padded(data, indices, nse, first.shape[n_batch:n_batch + n_sparse]) for data, indices in parts]
        data, indices = (jnp.concatenate(some, dimension) for some in zip(*padded))
        return BCOO((data, indices), shape=shape, unique_indices=unique, indices_sorted=all(mat.indices_sorted for mat in operands))
    column, offset, moved = dimension - n_batch, 0, []
    for (_, indices), size in zip(parts, sizes):
        values = indices[..., column]
        moved.append(indices.at[..., column].set(jnp.where(values < size, values + offset, shape[dimension]).astype(indices.dtype)))
        offset += size
    data = jnp.concatenate([data for data, _ in parts], n_batch)
    return BCOO((data, jnp.concatenate(moved, -2)), shape=shape, unique_indices=unique)


def _padded(data, indices, nse, sparse):
    """Pads buffers with out-of-range elements to `nse` elements."""
    n_batch, more = indices.ndim - 2, nse - indices.shape[-2]
    if not more:
        return data, indices
    zeros = jnp.zeros(data.shape[:n_batch] + (more,) + data.shape[n_batch + 1:], data.dtype)
    beyond = jnp.broadcast_to(jnp.asarray(sparse, indices.dtype), indices.shape[:-2] + (more, len(sparse)))
    return jnp.concatenate([data, zeros], n_batch), jnp.concatenate([indices, beyond], -2)


def _groups(old, new, counts):
    """Splits new sizes into batch, sparse and dense ones such that each group has as many elements as the old one."""
    ends, start = [], 0
    for end in np.cumsum(counts)[:2]:
        want, place = math.prod(old[:end]), start
        while math.prod(new[:place]) < want and place < len(new):
            place += 1
        if math.prod(new[:place]) != want:
            mixed = "sparse and dense" if len(ends) else "batch and sparse"
            raise ValueError(f"bcoo_reshape: new shape cannot mix {mixed} dimensions; got shape={tuple(old)} new_shape={tuple(new)} "
                             f"with {counts[0]} batch and {counts[2]} dense dimensions")
        ends.append(place if end else 0)
        start = place
    return ends


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None) -> BCOO:
    """Reshapes in row-major order; batch, sparse and dense dimensions are reshaped separately."""
    if sharding is not None:
        raise NotImplementedError("bcoo_reshape: sharding")
    whole = mat.shape[:mat.n_batch]
    if mat.data.shape[:mat.n_batch] != whole or mat.indices.shape[:mat.n_batch] != whole:
        raise NotImplementedError("reshape of arrays with broadcasted batch dimensions.")
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=tuple(dimensions))
    new = tuple(map(operator.index, new_sizes))
    if math.prod(new) != mat.size:
        raise TypeError(f"bcoo_reshape: cannot reshape {mat.shape} into {new}")
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
    data = mat.data.reshape(new[:n_batch] + (mat.nse,) + new[end:])
    indices = indices.reshape(new[:n_batch] + (mat.nse, end - n_batch))
    return BCOO((data, indices), shape=new, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Removes dimensions of size 1."""
    axes = {int(axis) % arr.ndim for axis in dimensions}
    if any(arr.shape[axis] != 1 for axis in axes):
        raise ValueError(f"cannot select an axis to squeeze out which has size not equal to one, got shape={arr.shape} and "
                         f"dimensions={tuple(dimensions)}")
    first_dense = arr.n_batch + arr.n_sparse
    batch = tuple(axis for axis in axes if axis < arr.n_batch)
    dense = tuple(axis - arr.n_sparse + 1 for axis in axes if axis >= first_dense)
    left = [axis - arr.n_batch for axis in range(arr.n_batch, first_dense) if axis not in axes]
    data = jnp.squeeze(arr.data, batch + dense)
    indices = jnp.squeeze(arr.indices[..., np.asarray(left, int)], batch)
    return BCOO((data, indices), shape=[size for axis, size in enumerate(arr.shape) if axis not in axes],
                indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> BCOO:
    """A slice of the array; elements outside become padding."""
    if not isinstance(mat, BCOO):
        raise TypeError(f"bcoo_slice: input should be BCOO array, got type(mat)={type(mat)}")
    starts, limits = ([operator.index(i) for i in some] for some in (start_indices, limit_indices))
    strides = [1] * mat.ndim if strides is None else [operator.index(stride) for stride in strides]
    if not len(starts) == len(limits) == len(strides) == mat.ndim:
        raise ValueError(f"bcoo_slice: indices must have size mat.ndim={mat.ndim}")
    if any(stride <= 0 for stride in strides):
        raise ValueError(f"strides must be a sequence of positive integers; got {strides}")
    if any(not 0 <= start <= limit <= size for start, limit, size in zip(starts, limits, mat.shape)):
        raise ValueError(f"bcoo_slice: invalid indices. Got start_indices={starts}, limit_indices={limits} and shape={mat.shape}")
    windows = list(map(slice, starts, limits, strides))
    shape = tuple(len(range(start, limit, stride)) for start, limit, stride in zip(starts, limits, strides))
    first_dense = mat.n_batch + mat.n_sparse

    def of_batch(part):  # a batch dimension of size 1 is broadcast
        return [window if size == whole else slice(min(1, count)) for window, size, whole, count in
                zip(windows, part.shape[:mat.n_batch], mat.shape, shape)]
    data = mat.data[(*of_batch(mat.data), slice(None), *windows[first_dense:])]
    indices = mat.indices[tuple(of_batch(mat.indices))]
    columns, inside = [], jnp.ones(indices.shape[:-1], bool)
    for axis in range(mat.n_batch, first_dense):
        start, limit, stride = starts[axis], limits[axis], strides[axis]
        column = indices[..., axis - mat.n_batch]
        inside = inside & (column >= start) & (column < limit) & ((column - start) % stride == 0)
        columns.append((column - start) // stride)
    return _window(mat, data, indices, columns, inside, shape)


def _window(mat, data, indices, columns, inside, shape):
    """The array of the elements inside a window, with nse at most the window's number of coordinates."""
    first_dense = mat.n_batch + mat.n_sparse
    sizes = shape[mat.n_batch:first_dense]
    if columns:
        indices = jnp.stack([jnp.where(inside, column, size).astype(indices.dtype) for column, size in zip(columns, sizes)], -1)
        data = jnp.where(over_dense(inside, mat.n_dense), data, 0)
    out = BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)
    return bcoo_sum_duplicates(out, nse=math.prod(sizes)) if out.nse > math.prod(sizes) else out


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A slice of the given sizes at dynamic start indices, which are clamped as in lax.dynamic_slice."""
    if not isinstance(mat, BCOO):
        raise TypeError(f"bcoo_dynamic_slice: input should be BCOO array, got type(mat)={type(mat)}")
    sizes = tuple(operator.index(size) for size in slice_sizes)
    starts = [jnp.asarray(start) for start in start_indices]
    if not len(starts) == len(sizes) == mat.ndim:
        raise ValueError(f"bcoo_dynamic_slice: indices must have size mat.ndim={mat.ndim}")
    if any(not 0 <= size <= whole for size, whole in zip(sizes, mat.shape)):
        raise TypeError(f"slice_sizes must be less than or equal to operand shape, got slice_sizes {sizes} for operand shape {mat.shape}.")
    starts = [jnp.clip(jnp.where(start < 0, start + whole, start), 0, whole - size).astype(np.int32)
              for start, size, whole in zip(starts, sizes, mat.shape)]
    first_dense = mat.n_batch + mat.n_sparse
    zero = jnp.zeros((), np.int32)

    def of_batch(part):
        repeated = [size != whole for size, whole in zip(part.shape[:mat.n_batch], mat.shape)]
        return ([zero if one else start for one, start in zip(repeated, starts)],
                [min(1, size) if one else size for one, size in zip(repeated, sizes)])
    begin, count = of_batch(mat.data)
    data = jax.lax.dynamic_slice(mat.data, [*begin, zero, *starts[first_dense:]], [*count, mat.nse, *sizes[first_dense:]])
    begin, count = of_batch(mat.indices)
    indices = jax.lax.dynamic_slice(mat.indices, [*begin, zero, zero], [*count, mat.nse, mat.n_sparse])
    columns, inside = [], jnp.ones(indices.shape[:-1], bool)
    for axis in range(mat.n_batch, first_dense):
        column = indices[..., axis - mat.n_batch] - starts[axis].astype(indices.dtype)
        inside = inside & (column >= 0) & (column < sizes[axis]) & (indices[..., axis - mat.n_batch] < mat.shape[axis])
        columns.append(column)
    return _window(mat, data, indices, columns, inside, sizes)


def bcoo_gather(operand: BCOO, start_indices: ArrayLike, dimension_numbers: Any, slice_sizes: Sequence[int], *,
                unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None) -> BCOO:
    """lax.gather for indexing with integer arrays, all in range: one window per row of indices."""
    start_indices = jnp.asarray(start_indices)
    collapsed, offsets = tuple(dimension_numbers.collapsed_slice_dims), tuple(dimension_numbers.offset_dims)
    if tuple(getattr(dimension_numbers, "operand_batching_dims", ())) or fill_value is not None:
        raise NotImplementedError(f"bcoo_gather: batching dimensions and fill_value, got {dimension_numbers} and {fill_value}")
    sizes = tuple(operator.index(size) for size in slice_sizes)
    struct = jax.ShapeDtypeStruct(operand.shape, operand.dtype)
    shape = jax.eval_shape(lambda x, i: jax.lax.gather(x, i, dimension_numbers, sizes, mode=mode), struct, start_indices).shape

    def window(row):
        starts = [jnp.zeros((), row.dtype)] * operand.ndim
        for place, axis in enumerate(dimension_numbers.start_index_map):
            starts[axis] = row[place]
        return bcoo_squeeze(bcoo_dynamic_slice(operand, starts, sizes), dimensions=collapsed)
    for _ in range(start_indices.ndim - 1):
        window = jax.vmap(window)
    out = window(start_indices)
    # The index dimensions come first; if they are between others in the result, they become sparse dimensions.
    batch = [axis for axis in range(len(shape)) if axis not in offsets]
    order = list(np.argsort([*batch, *offsets])) if shape else []
    if order == list(range(len(shape))):
        return out
    if any(axis >= out.n_batch for axis in order[:out.n_batch]):
        out = bcoo_update_layout(out, n_batch=0)
    return bcoo_transpose(out, permutation=[int(axis) for axis in order])


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Reverses the elements along some dimensions."""
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


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Sums over dimensions, as a sparse array that may have duplicate coordinates."""
    axes = {operator.index(axis) % mat.ndim for axis in axes}
    n_batch, first_dense = mat.n_batch, mat.n_batch + mat.n_sparse
    inside = inside_of(mat.indices, mat.shape[n_batch:first_dense])
    data = jnp.where(over_dense(inside, mat.n_dense), mat.data, 0)
    data = data.sum(tuple(axis - mat.n_sparse + 1 for axis in axes if axis >= first_dense), dtype=mat.dtype)
    left = [axis - n_batch for axis in range(n_batch, first_dense) if axis not in axes]
    indices = mat.indices[..., np.asarray(left, int)]
    batch = [axis for axis in range(n_batch) if axis in axes]
    if batch:  # concatenate the elements of all summed batches
        data, indices = (jnp.broadcast_to(part, mat.shape[:n_batch] + part.shape[n_batch:]) for part in (data, indices))
        kept, count = n_batch - len(batch), math.prod(mat.shape[axis] for axis in batch)
        data, indices = (jnp.moveaxis(part, batch, range(kept, n_batch)) for part in (data, indices))
        data, indices = (part.reshape(part.shape[:kept] + (count * mat.nse,) + part.shape[n_batch + 1:]) for part in (data, indices))
    return BCOO((data, indices), shape=[size for axis, size in enumerate(mat.shape) if axis not in axes])


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The same array with different numbers of batch and dense dimensions."""
    n_batch = mat.n_batch if n_batch is None else n_batch
    n_dense = mat.n_dense if n_dense is None else n_dense
    if n_batch + n_dense > mat.ndim or n_batch < 0 or n_dense < 0:
        raise ValueError(f"bcoo_update_layout: n_batch and n_dense must not be negative, and their sum at most {mat.ndim}; "
                         f"got n_batch={n_batch}, n_dense={n_dense}")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', None].")
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        grown = mat.shape[mat.n_batch:n_batch] + mat.shape[mat.ndim - n_dense:mat.ndim - mat.n_dense]
        if on_inefficient and any(size > 1 for size in grown):
            text = f"For matrix of shape {mat.shape}, increasing n_batch or n_dense from {(mat.n_batch, mat.n_dense)} to " \
                   f"{(n_batch, n_dense)} may store more than the nonzero elements."
            if on_inefficient == "error":
                raise SparseEfficiencyError(text + ' Use on_inefficient=None or "warn" to proceed.')
            warnings.warn(text, SparseEfficiencyWarning, stacklevel=2)
        freed = mat.shape[n_batch:mat.n_batch] + mat.shape[mat.ndim - mat.n_dense:mat.ndim - n_dense]
        nse = min(mat.nse * math.prod(freed), math.prod(mat.shape[n_batch:mat.ndim - n_dense]))
        return bcoo_fromdense(mat.todense(), nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=mat.indices.dtype)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    return mat


def _dense_to_sparse(mat):
    """Makes the first dense dimension the last sparse one: each of its elements gets a coordinate."""
    size = mat.shape[mat.n_batch + mat.n_sparse]
    data = mat.data.reshape(mat.data.shape[:mat.n_batch] + (mat.nse * size,) + mat.data.shape[mat.n_batch + 2:])
    indices = jnp.repeat(mat.indices, size, axis=-2, total_repeat_length=mat.nse * size)
    column = jnp.broadcast_to(jnp.tile(jnp.arange(size, dtype=indices.dtype), mat.nse)[:, None], indices.shape[:-1] + (1,))
    return BCOO((data, jnp.concatenate([indices, column], -1)), shape=mat.shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


def _batch_to_sparse(mat):
    """Makes the last batch dimension the first sparse one."""
    axis, size = mat.n_batch - 1, mat.shape[mat.n_batch - 1]
    batch = mat.shape[:axis]
    data = jnp.broadcast_to(mat.data, batch + (size,) + mat.data.shape[mat.n_batch:])
    indices = jnp.broadcast_to(mat.indices, batch + (size,) + mat.indices.shape[mat.n_batch:])
    column = jnp.broadcast_to(jnp.arange(size, dtype=indices.dtype)[:, None, None], batch + (size, mat.nse, 1))
    indices = jnp.concatenate([column, indices], -1).reshape(batch + (size * mat.nse, mat.n_sparse + 1))
    data = data.reshape(batch + (size * mat.nse,) + data.shape[mat.n_batch + 1:])
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)
