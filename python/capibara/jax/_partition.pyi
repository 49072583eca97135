"""Types of placement by specification alone."""
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar, overload

from capibara._core import Array
from capibara.jax._mesh import Mesh, PartitionSpec
from capibara.jax.typing import ArrayLike

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Specs: TypeAlias = PartitionSpec | Sequence[PartitionSpec | None] | None

def partition(array: ArrayLike, spec: PartitionSpec | Sequence[str | Sequence[str] | None], mesh: Mesh | None = None) -> Array:
    """Splits an array over a mesh according to a specification."""
@overload
def pjit(
    fun: None = None,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    *,
    in_axis_resources: _Specs = None,
    out_axis_resources: _Specs = None,
    **options: object,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """jit under its older name, with the older names of in_shardings and out_shardings. Without a function it is a decorator."""
@overload
def pjit(
    fun: Callable[_P, _R],
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    *,
    in_axis_resources: _Specs = None,
    out_axis_resources: _Specs = None,
    **options: object,
) -> Callable[_P, _R]: ...
