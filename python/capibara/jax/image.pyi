"""Types of capibara.jax.image. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from capibara._core import Array
from capibara._stub_types import Shape
from capibara.jax.lax import PrecisionLike
from capibara.jax.typing import ArrayLike
from capibara._types import ResizeMethod as ResizeMethod

def resize(image: ArrayLike, shape: Shape, method: str | ResizeMethod, antialias: bool = True, precision: PrecisionLike = 'highest') -> Array:
    """The image resampled to another resolution: nearest, linear, cubic, lanczos3, lanczos5, area or cubic-pytorch."""
def scale_and_translate(image: ArrayLike, shape: Shape, spatial_dims: Sequence[int], scale: ArrayLike, translation: ArrayLike, method: str | ResizeMethod, antialias: bool = True, precision: PrecisionLike = 'highest') -> Array:
    """The image scaled and translated along some of its dimensions, resampled to the given shape."""
