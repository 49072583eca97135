"""Types of meshes and specifications."""
import collections
import enum
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from capibara._stub_types import AxisName
from capibara.jax._devices import Device

class AxisType(enum.Enum):
    """Who decides how values are split along an axis of a mesh."""

    Auto = ...

class Unconstrained: ...

_Entry: TypeAlias = str | Sequence[str] | Unconstrained | None

class PartitionSpec:
    """For each dimension of an array the mesh axes that split it: P('x', None, ('y', 'z'))."""

    UNCONSTRAINED: ClassVar[Unconstrained]
    def __init__(self, *partitions: _Entry) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int | slice) -> Any: ...
    def __add__(self, other: PartitionSpec | tuple[_Entry, ...]) -> PartitionSpec: ...
    def __radd__(self, other: tuple[_Entry, ...]) -> PartitionSpec: ...
    def index(self, value: _Entry) -> int: ...
    def count(self, value: _Entry) -> int: ...

P = PartitionSpec

class NamedAxes:
    """What meshes with and without devices share: axes with names and sizes."""

    axis_names: tuple[AxisName, ...]
    axis_types: tuple[AxisType, ...]
    @property
    def shape(self) -> collections.OrderedDict[AxisName, int]: ...
    @property
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]: ...

class Mesh(NamedAxes):
    """A grid of devices whose axes have names."""

    devices: np.ndarray[Any, np.dtype[np.object_]]
    def __init__(
        self, devices: np.ndarray[Any, Any] | Sequence[Any], axis_names: str | Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None
    ) -> None: ...
    @property
    def axis_sizes(self) -> tuple[int, ...]: ...
    @property
    def size(self) -> int: ...
    @property
    def empty(self) -> bool: ...
    @property
    def device_ids(self) -> np.ndarray[Any, np.dtype[np.int64]]: ...
    @property
    def local_devices(self) -> list[Device]: ...
    @property
    def is_multi_process(self) -> bool: ...
    def __enter__(self) -> Mesh: ...
    def __exit__(self, *exception: Any) -> bool: ...

def current_mesh() -> Mesh | None:
    """The innermost mesh of `with mesh:` and `with set_mesh(mesh):` on this thread; None where there is none."""

class set_mesh:
    """Specifications without a mesh mean this one, while the context lasts."""

    def __init__(self, mesh: Mesh) -> None: ...
    def __enter__(self) -> Mesh: ...
    def __exit__(self, *exception: Any) -> bool: ...

def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[AxisName], axis_types: AxisType | Sequence[AxisType] | None = None, *,
    devices: Sequence[Device] | None = None
) -> Mesh:
    """A mesh of the first devices. All axes are Auto: the compiler decides how values lie that nothing is said of."""
