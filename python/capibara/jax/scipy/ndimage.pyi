"""Types of capibara.jax.scipy.ndimage. Made by tools/python/make_stubs.py."""
from typing import Any

def map_coordinates(input: Any, coordinates: Any, order: Any, mode: Any = ..., cval: Any = ...) -> Any:
    """The input sampled at fractional coordinates, one array of them for each dimension."""
