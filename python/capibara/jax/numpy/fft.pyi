"""Types of capibara.jax.numpy.fft. Made by tools/python/make_stubs.py."""
from typing import Any

def fft(a: Any, n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """The discrete Fourier transform along one axis."""
def fft2(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The discrete Fourier transform along two axes."""
def fftfreq(n: Any, d: Any = ..., *, dtype: Any = ..., device: Any = ...) -> Any:
    """The frequencies of the entries of a transform of n samples."""
def fftn(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The discrete Fourier transform along several axes, by default all."""
def fftshift(x: Any, axes: Any = ...) -> Any:
    """Moves the zero frequency to the middle of each axis."""
def hfft(a: Any, n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """The real spectrum of a signal with Hermitian symmetry, given by its first half."""
def ifft(a: Any, n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """The inverse of the discrete Fourier transform along one axis."""
def ifft2(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The inverse of fft2."""
def ifftn(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The inverse of fftn."""
def ifftshift(x: Any, axes: Any = ...) -> Any:
    """The inverse of fftshift."""
def ihfft(a: Any, n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """The first half of the signal with Hermitian symmetry that has this real spectrum."""
def irfft(a: Any, n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """Real data from the non-negative frequencies of its transform: the inverse of rfft."""
def irfft2(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The inverse of rfft2."""
def irfftn(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The inverse of rfftn."""
def rfft(a: Any, n: Any = ..., axis: Any = ..., norm: Any = ...) -> Any:
    """The non-negative frequencies of the transform of real data along one axis."""
def rfft2(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The transform of real data along two axes; only non-negative frequencies along the last."""
def rfftfreq(n: Any, d: Any = ..., *, dtype: Any = ..., device: Any = ...) -> Any:
    """The frequencies of the entries of rfft of n samples."""
def rfftn(a: Any, s: Any = ..., axes: Any = ..., norm: Any = ...) -> Any:
    """The transform of real data along several axes; only non-negative frequencies along the last."""
