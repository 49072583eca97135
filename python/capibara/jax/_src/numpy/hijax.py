"""jax._src.numpy.hijax: searchsorted along any dimension and over batches, nonzero over some axes, with the dtype of the result."""
import operator

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing

_METHODS = ["compare_all", "scan", "scan_unrolled", "sort"]


def searchsorted(sorted_arr, query, /, *, side="left", dimension=0, batch_dims=0, method=None, dtype=np.int32):
    """Where each value of query [*batch, ...] would be inserted along a dimension of sorted_arr [*batch, ...].

    The result has the batch dimensions, the other dimensions of sorted_arr, and those of query.
    """
    sorted_arr, query = jnp.asarray(sorted_arr), jnp.asarray(query)
    if sorted_arr.dtype != query.dtype:
        raise ValueError(f"dtypes of sorted_arr and query must match; got {sorted_arr.dtype} and {query.dtype}")
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if not 0 <= batch_dims < max(sorted_arr.ndim, 1):
        raise ValueError(f"batch_dims={batch_dims} must be in range [0, {sorted_arr.ndim})")
    if not batch_dims <= dimension < sorted_arr.ndim:
        raise ValueError(f"dimension={dimension} must be in range [{batch_dims}, {sorted_arr.ndim})")
    if sorted_arr.shape[:batch_dims] != query.shape[:batch_dims]:
        raise ValueError(f"batch dimension sizes must match; got {sorted_arr.shape[:batch_dims]} != {query.shape[:batch_dims]}")
    if method is not None and method not in _METHODS:
        raise ValueError(f"invalid argument method={method!r}, expected one of {_METHODS}")

    def find(line, query):
        return jnp.searchsorted(line, query, side=side, method=method or "scan").astype(dtype)
    for _ in range(sorted_arr.ndim - batch_dims - 1):
        find = jax.vmap(find, in_axes=(0, None))
    for _ in range(batch_dims):
        find = jax.vmap(find)
    return find(jnp.moveaxis(sorted_arr, dimension, -1), query)


def nonzero(a, /, *, size, axes=None, dtype=np.int32):
    """The indices of `size` nonzero elements along some axes, for each index of the other axes.

    If there are fewer, the rest is 0.
    """
    a = jnp.asarray(a)
    size = operator.index(size)
    axes = range(a.ndim) if axes is None else sorted(axis % a.ndim for axis in axes)
    others = [axis for axis in range(a.ndim) if axis not in axes]

    def find(part):
        return tuple(place.astype(dtype) for place in jnp.nonzero(part, size=size, fill_value=0))
    for _ in others:
        find = jax.vmap(find)
    return find(a.transpose(*others, *axes))


explain_missing(__name__)
