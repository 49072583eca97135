"""Types of capibara.kernels. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def layer_norm(x: ArrayLike, scale: ArrayLike, bias: ArrayLike, *, epsilon: float = 1e-05) -> Array:
    """Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis."""
