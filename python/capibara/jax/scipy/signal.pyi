"""Types of capibara.jax.scipy.signal. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from capibara._core import Array
from capibara.jax.lax import PrecisionLike
from capibara.jax.typing import ArrayLike

def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = 'full', method: str = 'auto', precision: PrecisionLike = None) -> Array:
    """The convolution of two arrays in all dimensions."""
def convolve2d(in1: ArrayLike, in2: ArrayLike, mode: str = 'full', boundary: str = 'fill', fillvalue: float = 0, precision: PrecisionLike = None) -> Array:
    """The convolution of two matrices."""
def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = 'full', method: str = 'auto', precision: PrecisionLike = None) -> Array:
    """The cross-correlation of two arrays in all dimensions."""
def correlate2d(in1: ArrayLike, in2: ArrayLike, mode: str = 'full', boundary: str = 'fill', fillvalue: float = 0, precision: PrecisionLike = None) -> Array:
    """The cross-correlation of two matrices."""
def csd(x: ArrayLike, y: ArrayLike | None, fs: ArrayLike = 1.0, window: str | ArrayLike = 'hann', nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None, detrend: str | bool = 'constant', return_onesided: bool = True, scaling: str = 'density', axis: int = -1, average: str = 'mean') -> tuple[Array, Array]:
    """Frequencies and the cross spectral density of two signals, by Welch's method."""
def detrend(data: ArrayLike, axis: int = -1, type: str = 'linear', bp: int | Sequence[int] = 0, overwrite_data: None = None) -> Array:
    """The data without its mean, or without the best-fitting lines of its parts."""
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = 'full', axes: int | Sequence[int] | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms."""
def istft(Zxx: ArrayLike, fs: ArrayLike = 1.0, window: str | ArrayLike = 'hann', nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1, freq_axis: int = -2) -> tuple[Array, Array]:
    """Times and signal of the inverse short-time Fourier transform."""
def stft(x: ArrayLike, fs: ArrayLike = 1.0, window: str | ArrayLike = 'hann', nperseg: int = 256, noverlap: int | None = None, nfft: int | None = None, detrend: str | bool = False, return_onesided: bool = True, boundary: str | None = 'zeros', padded: bool = True, axis: int = -1) -> tuple[Array, Array, Array]:
    """Frequencies, times, and the Fourier transforms of overlapping segments."""
def welch(x: ArrayLike, fs: ArrayLike = 1.0, window: str | ArrayLike = 'hann', nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None, detrend: str | bool = 'constant', return_onesided: bool = True, scaling: str = 'density', axis: int = -1, average: str = 'mean') -> tuple[Array, Array]:
    """Frequencies and the power spectral density, by Welch's method."""
