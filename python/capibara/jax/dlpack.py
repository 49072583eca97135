"""jax.dlpack: exchange of arrays with other libraries."""
from capibara import _core
from capibara._modules import explain_missing


def from_dlpack(external_array, device=None, copy=None):
    """An array of another library: sharing its memory where it can, or as `copy` says; then on `device`, where one is named."""
    array = _core.from_dlpack(external_array, copy)
    if device is None:
        return array
    from capibara.jax._api import device_put
    moved = device_put(array, device)
    if copy is False and not _core.shares_memory(array, moved):
        raise ValueError(f"from_dlpack: moving the array to {device} copies it, but copy=False")
    return moved


def is_supported_dtype(dtype):
    """Whether arrays of a dtype can be exchanged."""
    import numpy as np
    dtype = _core.dtype_of(dtype)
    return isinstance(dtype, np.dtype) and (dtype.kind in "biufc" or dtype.name == "bfloat16")


explain_missing(__name__)
