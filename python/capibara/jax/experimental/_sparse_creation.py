"""Sparse arrays made of others or of nothing: concatenated, empty, with ones on a diagonal, random."""
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import Array
from capibara.jax.experimental.sparse import BCOO, JAXSparse, _concatenated
from capibara.jax.typing import ArrayLike, DTypeLike


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Sparse arrays one after the other along a sparse dimension."""
    moved, offset = [], 0
    for array in operands:
        axis = dimension - array.n_batch
        if not 0 <= axis < array.n_sparse:
            raise NotImplementedError(f"bcoo_concatenate: dimension {dimension} is not a sparse one")
        moved.append(BCOO((array.data, array.indices.at[..., axis].add(offset)), shape=array.shape))
        offset += array.shape[dimension]
    shape = list(operands[0].shape)
    shape[dimension] = offset
    joined = _concatenated(moved)
    return BCOO((joined.data, joined.indices), shape=shape)


def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo",
          **kwds: object) -> BCOO:
    """A sparse array of zeros."""
    _only_bcoo(sparse_format, kwds)
    return BCOO((jnp.zeros(0, dtype or float), jnp.zeros((0, len(shape)), index_dtype)), shape=shape)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
        sparse_format: str = "bcoo", **kwds: object) -> BCOO:
    """A sparse matrix with ones on a diagonal."""
    _only_bcoo(sparse_format, kwds)
    M = N if M is None else M
    count = max(0, min(N + min(k, 0), M - max(k, 0)))
    steps = np.arange(count)
    indices = np.column_stack([steps - min(k, 0), steps + max(k, 0)]).astype(index_dtype)
    return BCOO((jnp.ones(count, dtype or float), indices), shape=(N, M), indices_sorted=True, unique_indices=True)


def _only_bcoo(sparse_format, options):
    if sparse_format != "bcoo" or options:
        raise NotImplementedError(f"sparse_format must be 'bcoo' without further options, got {sparse_format!r} and {options}")


def random_bcoo(key: Array, shape: Sequence[int], *, dtype: DTypeLike = float, indices_dtype: DTypeLike | None = None, nse: float = 0.2,
                n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Array] | None = None, **kwds: Any) -> BCOO:
    """A sparse array of random values at random coordinates; nse is their number, or their share of all coordinates."""
    shape = tuple(shape)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid {n_batch=}, {n_dense=} for {shape=}")
    batch, sparse, dense = shape[:n_batch], shape[n_batch:len(shape) - n_dense], shape[len(shape) - n_dense:]
    size = math.prod(sparse)
    if not 0 <= nse < size:
        raise ValueError(f"got {nse=}, expected to be between 0 and {size}")
    count = math.ceil(nse * size) if 0 < nse < 1 else int(nse)

    def coordinates(key):
        if not sparse:
            return jnp.zeros((count, 0), indices_dtype or int)
        flat = jax.random.choice(key, size, shape=(count,), replace=not unique_indices).astype(indices_dtype or int)
        return jnp.stack(jnp.unravel_index(flat, sparse), -1)

    keys = jax.random.split(key, math.prod(batch) + 1)
    data = (generator or jax.random.uniform)(keys[0], shape=batch + (count,) + dense, dtype=dtype, **kwds)
    indices = jax.vmap(coordinates)(keys[1:]).reshape(batch + (count, len(sparse)))
    mat = BCOO((data, indices), shape=shape)
    return mat.sort_indices() if sorted_indices else mat


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """A sparse array with all its elements; others as they are."""
    return arr.todense() if isinstance(arr, JAXSparse) else jnp.asarray(arr)
