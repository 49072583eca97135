"""Types of shapes and dtypes without values, and of the stages' information about arguments."""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from capibara._core import Array, ShapedArray
from capibara.jax._axes import ManualAxisType
from capibara.jax._mesh import PartitionSpec
from capibara.jax._sharding import Format, Sharding
from capibara.jax.typing import DTypeLike

class ShapeDtypeStruct:
    """A shape and a dtype without a value."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    manual_axis_type: ManualAxisType | None
    is_ref: bool
    def __init__(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        sharding: Sharding | PartitionSpec | Format | None = None,
        weak_type: bool = False,
        manual_axis_type: ManualAxisType | None = None,
        is_ref: bool = False,
        **_: Any,
    ) -> None: ...
    @property
    def sharding(self) -> Sharding | None: ...
    @property
    def format(self) -> Format: ...
    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    def __len__(self) -> int: ...
    def update(self, **changes: Any) -> ShapeDtypeStruct: ...

class ArgInfo(ShapeDtypeStruct):
    """A stage's information about an argument."""

    donated: bool
    def __init__(self, shape: Sequence[int] | ShapedArray, dtype: DTypeLike | None = None, donated: bool = False) -> None: ...

class PlacementRules(NamedTuple):
    """Callbacks set by the sharding module, which imports this one."""

    checked: Callable[..., Any]
    meant: Callable[..., Any]
    Format: type[Any]
    Sharding: type[Any]

def set_placement_rules(rules: PlacementRules) -> None: ...
def zeros_of(struct: ShapeDtypeStruct | ShapedArray) -> Array: ...
