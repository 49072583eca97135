"""Types of jax.pmap."""
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from capibara._stub_types import AxisName, PyTree
from capibara.jax._devices import Device

_P = ParamSpec("_P")
_R = TypeVar("_R")

def pmap(
    fun: Callable[_P, _R], axis_name: AxisName | None = None, *, in_axes: int | None | Sequence[Any] = 0, out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Sequence[int] = (), devices: Sequence[Device] | None = None, backend: str | None = None,
    axis_size: int | None = None, donate_argnums: int | Sequence[int] = ()
) -> Callable[_P, _R]:
    """Compiles a function and maps it over the leading axis of its arguments, one element for each device."""
