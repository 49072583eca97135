"""Types of capibara.jax.scipy.fft. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from capibara._core import Array
from capibara._stub_types import Shape
from capibara.jax.typing import ArrayLike

def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform of type 2 along one axis."""
def dctn(x: ArrayLike, type: int = 2, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The discrete cosine transform of type 2 along several axes."""
def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of dct."""
def idctn(x: ArrayLike, type: int = 2, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of dctn."""
