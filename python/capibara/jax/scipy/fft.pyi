"""Types of capibara.jax.scipy.fft. Made by tools/python/make_stubs.py."""
from typing import Any

def dct(x: Any, type: Any = ..., n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """The discrete cosine transform of type 2 along one axis."""
def dctn(x: Any, type: Any = ..., s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The discrete cosine transform of type 2 along several axes."""
def idct(x: Any, type: Any = ..., n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """The inverse of dct."""
def idctn(x: Any, type: Any = ..., s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The inverse of dctn."""
