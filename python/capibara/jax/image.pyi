"""Types of capibara.jax.image. Made by tools/python/make_stubs.py."""
from typing import Any

class ResizeMethod(Any): ...
def resize(image: Any, shape: Any, method: Any, antialias: Any = ..., precision: Any = ...) -> Any:
    """The image resampled to another resolution: nearest, linear, cubic, lanczos3, lanczos5, area or cubic-pytorch."""
def scale_and_translate(image: Any, shape: Any, spatial_dims: Any, scale: Any, translation: Any, method: Any, antialias: Any = ..., precision: Any = ...) -> Any:
    """The image scaled and translated along some of its dimensions, resampled to the given shape."""
