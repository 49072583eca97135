"""Products of sparse arrays: contractions with dense and sparse ones, elementwise and sampled products, 1D convolutions."""
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import Array
from capibara.jax.experimental.sparse._shapes import bcoo_broadcast_in_dim, bcoo_update_layout
from capibara.jax.experimental.sparse.bcoo import BCOO, _bcoo_extract, bcoo_sum_duplicates
from capibara.jax.experimental.sparse.util import (
    SparseInfo,
    dot_shape,
    inside_of,
    linear_order,
    nfold_vmap,
    over_dense,
    remaining,
)
from capibara.jax.lax import PrecisionLike
from capibara.jax.typing import ArrayLike, DTypeLike

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def _dimension_lists(dimension_numbers):
    (left, right), (left_batch, right_batch) = dimension_numbers
    return [[operator.index(axis) for axis in (axes if np.ndim(axes) else [axes])] for axes in (left, right, left_batch, right_batch)]


def bcoo_dot_general(lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *, dimension_numbers: DotDimensionNumbers,
                     precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
                     out_sharding: Any = None) -> BCOO | Array:
    """lax.dot_general with a sparse operand: the result is dense if one operand is dense, sparse if both are sparse.

    Products are accumulated in the result's type; precision has no effect on that.
    """
    if out_sharding is not None:
        raise NotImplementedError("bcoo_dot_general: out_sharding")
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_by_sparse(lhs, rhs, dimension_numbers, preferred_element_type)
    if isinstance(lhs, BCOO):
        return _bcoo_dot_general(lhs.data, lhs.indices, rhs, lhs_spinfo=lhs._info, dimension_numbers=dimension_numbers,
                                 preferred_element_type=preferred_element_type)
    if not isinstance(rhs, BCOO):
        return jax.lax.dot_general(lhs, rhs, dimension_numbers, precision=precision, preferred_element_type=preferred_element_type)
    left, right, left_batch, right_batch = _dimension_lists(dimension_numbers)
    out = _bcoo_dot_general(rhs.data, rhs.indices, lhs, lhs_spinfo=rhs._info, dimension_numbers=((right, left), (right_batch, left_batch)),
                            preferred_element_type=preferred_element_type)
    # The free dimensions of the sparse operand come first in that result, but last here.
    batch, free = len(left_batch), rhs.ndim - len(right) - len(right_batch)
    return jnp.moveaxis(out, range(batch, batch + free), range(out.ndim - free, out.ndim))


def _bcoo_dot_general(data: Array, indices: Array, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers,
                      preferred_element_type: DTypeLike | None, lhs_spinfo: SparseInfo) -> Array:
    rhs, shape = jnp.asarray(rhs), lhs_spinfo.shape
    left, right, left_batch, right_batch = _dimension_lists(dimension_numbers)
    dot_shape(shape, rhs.shape, ((left, right), (left_batch, right_batch)))  # checks the arguments
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    if any(axis >= n_batch + n_sparse for axis in left + left_batch):
        raise NotImplementedError("bcoo_dot_general: contracting over dense dimensions, or a batch of them, got "
                                  f"{dimension_numbers} for shape {shape}, whose dimensions from {n_batch + n_sparse} on are dense")
    dtype = preferred_element_type or jnp.result_type(data, rhs)
    data, rhs = data.astype(dtype), rhs.astype(dtype)
    # The other operand's dimensions: partners of the sparse operand's batch dimensions, in their order, then contracted ones, the rest.
    partner = dict(zip(left_batch + left, right_batch + right))
    shared = [axis for axis in left_batch if axis >= n_batch]  # sparse dimensions that index both operand and result
    looked_up = shared + [axis for axis in left if axis >= n_batch]
    mapped = [partner[axis] for axis in range(n_batch) if axis in partner]
    rhs = rhs.transpose(*mapped, *(partner[axis] for axis in looked_up), *remaining(range(rhs.ndim), right, right_batch))
    columns = [axis - n_batch for axis in looked_up]
    free = [axis - n_batch for axis in shared] + remaining(range(n_sparse), columns)
    sizes = [shape[n_batch + axis] for axis in free]

    def one(data, indices, rhs):
        rows = rhs.at[tuple(indices[:, column] for column in columns)].get(mode="fill", fill_value=0) if columns else \
            jnp.broadcast_to(rhs, (indices.shape[0], *rhs.shape))
        terms = data.reshape(data.shape + (1,) * (rows.ndim - 1)) * rows.reshape(rows.shape[:1] + (1,) * (data.ndim - 1) + rows.shape[1:])
        if not free:
            return terms.sum(0)
        return jnp.zeros((*sizes, *terms.shape[1:]), dtype).at[tuple(indices[:, axis] for axis in free)].add(terms, mode="drop")
    for axis in reversed(range(n_batch)):
        one = jax.vmap(one, in_axes=(0, 0, 0 if axis in partner else None))
    batch = shape[:n_batch]
    data, indices = (jnp.broadcast_to(part, batch + part.shape[n_batch:]) for part in (data, indices))
    out = one(data, indices, rhs)
    front = [axis if axis < n_batch else n_batch + shared.index(axis) for axis in left_batch]
    front += [axis for axis in range(n_batch) if axis not in partner]
    summed = [axis for axis in range(n_batch) if axis in left]
    out = out.transpose(*front, *remaining(range(out.ndim), front, summed), *summed)
    return out.sum(tuple(range(out.ndim - len(summed), out.ndim))) if summed else out


def _sparse_by_sparse(lhs, rhs, dimension_numbers, preferred_element_type):
    """Both operands sparse: every pair of elements with equal contracted coordinates contributes one element to the result."""
    left, right, left_batch, right_batch = _dimension_lists(dimension_numbers)
    shape = dot_shape(lhs.shape, rhs.shape, ((left, right), (left_batch, right_batch)))
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_spdot_general with dense dimensions.")
    if any(axis >= mat.n_batch for mat, axes in ((lhs, left_batch), (rhs, right_batch)) for axis in axes):
        raise NotImplementedError("bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse representation.")
    if any(axis < mat.n_batch for mat, axes in ((lhs, left), (rhs, right)) for axis in axes):
        raise NotImplementedError("bcoo_spdot_general only supports contraction of sparse indices.")
    if rhs.n_batch > len(right_batch) and lhs.n_sparse > len(left):
        raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims on lhs.")
    dtype = preferred_element_type or jnp.result_type(lhs.dtype, rhs.dtype)
    left_columns, right_columns = [axis - lhs.n_batch for axis in left], [axis - rhs.n_batch for axis in right]
    left_free, right_free = remaining(range(lhs.n_sparse), left_columns), remaining(range(rhs.n_sparse), right_columns)
    left_shape, right_shape = lhs.shape[lhs.n_batch:], rhs.shape[rhs.n_batch:]
    n_batch = lhs.n_batch + rhs.n_batch - len(left_batch)
    sparse = shape[n_batch:]

    def one(left_data, left_indices, right_data, right_indices):
        same = (left_indices[:, None, np.asarray(left_columns, int)] == right_indices[None, :, np.asarray(right_columns, int)]).all(-1)
        same = same & inside_of(left_indices, left_shape)[:, None] & inside_of(right_indices, right_shape)[None, :]
        data = jnp.where(same, left_data[:, None].astype(dtype) * right_data[None, :].astype(dtype), 0)
        grid = same.shape
        columns = [jnp.broadcast_to(left_indices[:, None, axis], grid) for axis in left_free]
        columns += [jnp.broadcast_to(right_indices[None, :, axis], grid) for axis in right_free]
        if not columns:
            return data.ravel(), jnp.zeros((data.size, 0), left_indices.dtype)
        columns = [jnp.where(same, column, size).astype(left_indices.dtype) for column, size in zip(columns, sparse)]
        return data.ravel(), jnp.stack([column.ravel() for column in columns], -1)

    def ordered(mat, batch):
        order = [*batch, *remaining(range(mat.n_batch), batch)]
        return [part.transpose(*order, *range(mat.n_batch, part.ndim)) for part in (mat.data, mat.indices)]
    one = nfold_vmap(one, rhs.n_batch - len(right_batch), in_axes=(None, None, 0, 0))
    one = nfold_vmap(one, lhs.n_batch - len(left_batch), in_axes=(0, 0, None, None))
    data, indices = nfold_vmap(one, len(left_batch))(*ordered(lhs, left_batch), *ordered(rhs, right_batch))
    out = BCOO((data, indices), shape=shape)
    most = math.prod(sparse)
    return bcoo_sum_duplicates(out, nse=most) if out.nse > most else out


def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: Array, *, dimension_numbers: DotDimensionNumbers) -> Array:
    """The elements of lax.dot_general(A, B) at indices[*batch, nse, sparse]; without batch dimensions only these are computed."""
    A, B = jnp.asarray(A), jnp.asarray(B)
    left, right, left_batch, right_batch = _dimension_lists(dimension_numbers)
    shape = dot_shape(A.shape, B.shape, ((left, right), (left_batch, right_batch)))
    left_free, right_free = remaining(range(A.ndim), left, left_batch), remaining(range(B.ndim), right, right_batch)
    if left_batch or indices.ndim != 2 or indices.shape[-1] != len(shape):
        return _bcoo_extract(indices, jax.lax.dot_general(A, B, ((left, right), (left_batch, right_batch)), precision="highest"))
    indices = jnp.asarray(indices)
    rows = A.transpose(*left_free, *left).at[tuple(indices[:, :len(left_free)].T)].get(mode="fill", fill_value=0) if left_free else \
        jnp.broadcast_to(A.transpose(*left), (indices.shape[0], *(A.shape[axis] for axis in left)))
    columns = B.transpose(*right_free, *right).at[tuple(indices[:, len(left_free):].T)].get(mode="fill", fill_value=0) if right_free else \
        jnp.broadcast_to(B.transpose(*right), (indices.shape[0], *(B.shape[axis] for axis in right)))
    values = rows * columns
    return values.sum(tuple(range(1, values.ndim)))


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """The data of the product of a sparse array and a dense one that broadcasts to its shape."""
    v = jnp.asarray(v)
    if v.ndim == 0:
        return sp_mat.data * v
    if v.ndim > sp_mat.ndim or np.broadcast_shapes(sp_mat.shape, v.shape) != sp_mat.shape:
        raise NotImplementedError("multiplication between sparse and dense is only implemented for cases where the output shape matches "
                                  f"the sparse matrix shape; got {sp_mat.shape} and {v.shape}")
    n_batch, n_sparse = sp_mat.n_batch, sp_mat.n_sparse
    v = v.reshape((1,) * (sp_mat.ndim - v.ndim) + v.shape)
    shape = v.shape[n_batch:n_batch + n_sparse]
    whole = [axis for axis in range(n_sparse) if shape[axis] != 1]

    def one(data, indices, v):
        v = v.reshape(tuple(shape[axis] for axis in whole) + v.shape[n_sparse:])
        if not whole:
            return data * v[None]
        return data * v.at[tuple(indices[:, axis] for axis in whole)].get(mode="fill", fill_value=0)
    return nfold_vmap(one, n_batch)(sp_mat.data, sp_mat.indices, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of two sparse arrays whose shapes broadcast."""
    if lhs.ndim != rhs.ndim:
        raise NotImplementedError(f"bcoo_multiply_sparse: arrays of different ranks, got shapes {lhs.shape} and {rhs.shape}")
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(f"bcoo_multiply_sparse: arrays with different numbers of dense dimensions, got {lhs} and {rhs}")
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (bcoo_update_layout(mat, n_batch=n_batch) for mat in (lhs, rhs))
    n_sparse = lhs.n_sparse
    sizes = shape[n_batch:n_batch + n_sparse]
    if rhs.shape[n_batch:n_batch + n_sparse] == sizes != lhs.shape[n_batch:n_batch + n_sparse]:
        lhs, rhs = rhs, lhs
    if lhs.shape[n_batch:n_batch + n_sparse] != sizes:
        grown = lhs.shape[:n_batch] + sizes + lhs.shape[n_batch + n_sparse:]
        lhs = bcoo_broadcast_in_dim(lhs, shape=grown, broadcast_dimensions=range(lhs.ndim))
    lhs, rhs = (mat if mat.unique_indices else bcoo_sum_duplicates(mat, nse=mat.nse) for mat in (lhs, rhs))
    shared = [axis for axis in range(n_sparse) if rhs.shape[n_batch + axis] == sizes[axis]]
    ranges = [sizes[axis] for axis in shared]

    def one(left_data, left_indices, right_data, right_indices):
        # Coordinates of both are sorted together: equal ones get the same number, by which an element finds its partner.
        count, others = left_indices.shape[0], right_indices.shape[0]
        keys = jnp.concatenate([part[:, np.asarray(shared, int)] for part in (left_indices, right_indices)])
        order, _, fresh = linear_order(keys, ranges)
        numbers = jnp.zeros(count + others, int).at[order].set(jnp.cumsum(fresh) - 1)
        valid = inside_of(right_indices, rhs.shape[n_batch:n_batch + n_sparse])
        holder = jnp.full(count + others, others).at[jnp.where(valid, numbers[count:], count + others)].set(jnp.arange(others), mode="drop")
        values = right_data.at[holder[numbers[:count]]].get(mode="fill", fill_value=0)
        return jnp.where(over_dense(inside_of(left_indices, sizes), left_data.ndim - 1), left_data * values, 0)
    data = nfold_vmap(one, n_batch)(lhs.data, lhs.indices, rhs.data, rhs.indices)
    indices = lhs.indices
    return BCOO((data, indices), shape=shape, indices_sorted=lhs.indices_sorted, unique_indices=lhs.unique_indices)


def bcoo_conv_general_dilated(lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *, window_strides: Sequence[int], padding: Any,
                              lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
                              dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
                              precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> BCOO:
    """lax.conv_general_dilated for one channel and one dimension, without strides, dilation or groups."""
    lhs, rhs = (mat if isinstance(mat, BCOO) else BCOO.fromdense(mat, n_batch=2, nse=jnp.shape(mat)[-1]) for mat in (lhs, rhs))
    dims = jax.lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    orders = (dims.lhs_spec, dims.rhs_spec, dims.out_spec)
    plain = lhs.ndim == rhs.ndim == 3 and all(tuple(order) == (0, 1, 2) for order in orders)
    if not plain or lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError(f"bcoo convolution of one channel over one dimension alone, got shapes {lhs.shape} and {rhs.shape}")
    if tuple(window_strides) != (1,) or any(tuple(d or (1,)) != (1,) for d in (lhs_dilation, rhs_dilation)) or \
            feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError("bcoo convolution with strides, dilation or groups")
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo convolution of arrays with dense dimensions")
    (low, high), = jax.lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], (1,), padding) if isinstance(padding, str) else padding
    size = max(0, lhs.shape[2] + low + high - rhs.shape[2] + 1)
    left, right = (bcoo_update_layout(mat, n_batch=2, on_inefficient=None) for mat in (lhs, rhs))
    dtype = preferred_element_type or jnp.result_type(left.dtype, right.dtype)
    # Element i of one and j of the other contribute to result element low + i - j.
    data = left.data[0, 0][:, None].astype(dtype) * right.data[0, 0][None, :].astype(dtype)
    first, second = left.indices[0, 0, :, 0], right.indices[0, 0, :, 0]
    places = first[:, None] + low - second[None, :]
    inside = (first < lhs.shape[2])[:, None] & (second < rhs.shape[2])[None, :] & (places >= 0) & (places < size)
    data = jnp.where(inside, data, 0).ravel()[None, None]
    places = jnp.where(inside, places, size).ravel()[None, None, :, None].astype(left.indices.dtype)
    return BCOO((data, places), shape=(1, 1, size))
