"""Types of capibara.jax.scipy.ndimage. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def map_coordinates(input: ArrayLike, coordinates: ArrayLike | Sequence[ArrayLike], order: int, mode: str = 'constant', cval: ArrayLike = 0.0) -> Array:
    """The input sampled at fractional coordinates, one array of them for each dimension."""
