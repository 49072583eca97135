"""Sparse arrays made of others or of nothing: concatenated, empty, with ones on a diagonal."""
from collections.abc import Sequence

import numpy as np

import capibara.jax.numpy as jnp
from capibara.jax.experimental.sparse import BCOO, _concatenated
from capibara.jax.typing import DTypeLike


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
