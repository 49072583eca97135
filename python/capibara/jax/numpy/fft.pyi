"""Types of capibara.jax.numpy.fft. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from capibara._core import Array
from capibara._stub_types import Shape
from capibara.jax._devices import Device
from capibara.jax._sharding import Sharding
from capibara.jax.typing import ArrayLike, DTypeLike

def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along one axis."""
def fft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """The discrete Fourier transform along two axes."""
def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None) -> Array:
    """The frequencies of the entries of a transform of n samples."""
def fftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The discrete Fourier transform along several axes, by default all."""
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Moves the zero frequency to the middle of each axis."""
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real spectrum of a signal with Hermitian symmetry, given by its first half."""
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of the discrete Fourier transform along one axis."""
def ifft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """The inverse of fft2."""
def ifftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of fftn."""
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of fftshift."""
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first half of the signal with Hermitian symmetry that has this real spectrum."""
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Real data from the non-negative frequencies of its transform: the inverse of rfft."""
def irfft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """The inverse of rfft2."""
def irfftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of rfftn."""
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The non-negative frequencies of the transform of real data along one axis."""
def rfft2(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """The transform of real data along two axes; only non-negative frequencies along the last."""
def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Device | Sharding | None = None) -> Array:
    """The frequencies of the entries of rfft of n samples."""
def rfftn(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The transform of real data along several axes; only non-negative frequencies along the last."""
