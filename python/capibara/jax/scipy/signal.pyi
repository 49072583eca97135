"""Types of capibara.jax.scipy.signal. Made by tools/python/make_stubs.py."""
from typing import Any

def convolve(in1: Any, in2: Any, mode: Any = ..., method: Any = ..., precision: Any = ...) -> Any:
    """The convolution of two arrays in all dimensions."""
def convolve2d(in1: Any, in2: Any, mode: Any = ..., boundary: Any = ..., fillvalue: Any = ..., precision: Any = ...) -> Any:
    """The convolution of two matrices."""
def correlate(in1: Any, in2: Any, mode: Any = ..., method: Any = ..., precision: Any = ...) -> Any:
    """The cross-correlation of two arrays in all dimensions."""
def correlate2d(in1: Any, in2: Any, mode: Any = ..., boundary: Any = ..., fillvalue: Any = ..., precision: Any = ...) -> Any:
    """The cross-correlation of two matrices."""
def csd(x: Any, y: Any, fs: Any = ..., window: Any = ..., nperseg: Any = ..., noverlap: Any = ..., nfft: Any = ..., detrend: Any = ..., return_onesided: Any = ..., scaling: Any = ..., axis: Any = ..., average: Any = ...) -> Any:
    """Frequencies and the cross spectral density of two signals, by Welch's method."""
def detrend(data: Any, axis: Any = ..., type: Any = ..., bp: Any = ..., overwrite_data: Any = ...) -> Any:
    """The data without its mean, or without the best-fitting lines of its parts."""
def fftconvolve(in1: Any, in2: Any, mode: Any = ..., axes: Any = ...) -> Any:
    """The convolution of two arrays by Fourier transforms."""
def istft(Zxx: Any, fs: Any = ..., window: Any = ..., nperseg: Any = ..., noverlap: Any = ..., nfft: Any = ..., input_onesided: Any = ..., boundary: Any = ..., time_axis: Any = ..., freq_axis: Any = ...) -> Any:
    """Times and signal of the inverse short-time Fourier transform."""
def stft(x: Any, fs: Any = ..., window: Any = ..., nperseg: Any = ..., noverlap: Any = ..., nfft: Any = ..., detrend: Any = ..., return_onesided: Any = ..., boundary: Any = ..., padded: Any = ..., axis: Any = ...) -> Any:
    """Frequencies, times, and the Fourier transforms of overlapping segments."""
def welch(x: Any, fs: Any = ..., window: Any = ..., nperseg: Any = ..., noverlap: Any = ..., nfft: Any = ..., detrend: Any = ..., return_onesided: Any = ..., scaling: Any = ..., axis: Any = ..., average: Any = ...) -> Any:
    """Frequencies and the power spectral density, by Welch's method."""
