"""jax.typing: types for annotations."""
from typing import Any, Protocol, Union

import numpy as np

from capibara._array_class import Array


class SupportsDType(Protocol):
    """An object with a dtype, such as jax.numpy.float32."""

    @property
    def dtype(self) -> np.dtype: ...


ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]
DTypeLike = Union[str, type[Any], np.dtype, SupportsDType]
