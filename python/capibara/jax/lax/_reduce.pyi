"""Types of lax.reduce over pytrees."""
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from capibara._core import Array
from capibara.jax._mesh import PartitionSpec
from capibara.jax._sharding import Sharding
from capibara.jax.typing import ArrayLike

_T = TypeVar("_T")

@overload
def reduce(
    operands: ArrayLike, init_values: ArrayLike, computation: Callable[[Any, Any], Any], dimensions: Sequence[int],
    out_sharding: Sharding | PartitionSpec | None = None
) -> Array:
    """Combines elements along dimensions by an associative function of two operands' elements."""
@overload
def reduce(
    operands: _T, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int],
    out_sharding: Sharding | PartitionSpec | None = None
) -> _T: ...
