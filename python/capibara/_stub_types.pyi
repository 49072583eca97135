"""Types used only by the stubs: this module does not exist at run time."""
from collections.abc import Hashable, Sequence
from types import EllipsisType
from typing import Any, Protocol, TypeAlias

import numpy as np

from capibara._types import Slice
from capibara.jax.typing import ArrayLike

PyTree: TypeAlias = Any  # nested containers: no checker can follow what a function does to their leaves
AxisName: TypeAlias = Hashable  # of vmap, pmap and meshes; several names are a tuple
Shape: TypeAlias = Sequence[int]
Index: TypeAlias = ArrayLike | slice | EllipsisType | Slice | list[Any] | tuple[Any, ...] | None

class DuckTypedArray(Protocol):
    """An object with a shape and a dtype, such as jax.ShapeDtypeStruct."""

    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...

Prototype: TypeAlias = ArrayLike | DuckTypedArray  # what zeros_like and shape look at
