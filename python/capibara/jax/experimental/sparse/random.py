"""jax.experimental.sparse.random: sparse arrays of random values."""
import math
from collections.abc import Callable, Sequence
from typing import Any

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.experimental.sparse.bcoo import BCOO
from capibara.jax.typing import DTypeLike


def random_bcoo(key: Array, shape: Sequence[int], *, dtype: DTypeLike = float, indices_dtype: DTypeLike | None = None, nse: float = 0.2,
                n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Array] | None = None, **kwds: Any) -> BCOO:
    """A sparse array of random values at random coordinates; nse is their number, or their fraction of all coordinates."""
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


explain_missing(__name__)
