"""Types of jax.dlpack: exchange of arrays with other libraries."""
from typing import Any

import numpy as np

from capibara._core import Array
from capibara.jax._devices import Device
from capibara.jax._sharding import Sharding
from capibara.jax.typing import DTypeLike

SUPPORTED_DTYPES_SET: frozenset[np.dtype[Any]]

def from_dlpack(external_array: Any, device: Device | Sharding | None = None, copy: bool | None = None) -> Array:
    """Imports an array of another library: without a copy if possible, or according to `copy`; then moves it to `device` if passed."""
def is_supported_dtype(dtype: DTypeLike) -> bool:
    """True if arrays of a dtype can be exchanged."""
