"""jax.dlpack: exchange of arrays with other libraries."""
import ml_dtypes
import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax._api import device_put as _device_put


def from_dlpack(external_array, device=None, copy=None):
    """Imports an array of another library: without a copy if possible, or according to `copy`; then moves it to `device` if passed."""
    array = _core.from_dlpack(external_array, copy)
    if device is None:
        return array
    moved = _device_put(array, device)
    if copy is False and not _core.shares_memory(array, moved):
        raise ValueError(f"from_dlpack: moving the array to {device} copies it, but copy=False")
    return moved


SUPPORTED_DTYPES_SET = frozenset(map(np.dtype, (
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128, bool)))


def is_supported_dtype(dtype):
    """True if arrays of a dtype can be exchanged."""
    if dtype is None:
        raise TypeError(f"Expected a string or dtype-like object; got {dtype=}")
    return _core.dtype_of(dtype) in SUPPORTED_DTYPES_SET


explain_missing(__name__)
