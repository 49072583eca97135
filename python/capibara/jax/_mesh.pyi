"""Types of meshes and specifications."""
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, final, TypeAlias

import numpy as np

from capibara._stub_types import AxisName
from capibara.jax._axes import AbstractMesh, NamedAxes
from capibara.jax._axes import AxisType as AxisType
from capibara.jax._devices import Device

class Unconstrained: ...

_Entry: TypeAlias = str | Sequence[str] | Unconstrained | None

@final
class PartitionSpec:
    """The mesh axes that split each dimension of an array: P('x', None, ('y', 'z')).

    Unlike in jax, dimensions may have names, as documentation: P(batch='x', features=None) is P('x', None).
    """

    UNCONSTRAINED: ClassVar[Unconstrained]
    unreduced: frozenset[str]
    reduced: frozenset[str]
    def __new__(
        cls, *partitions: _Entry, unreduced: set[str] | frozenset[str] = ..., reduced: set[str] | frozenset[str] = ...,
        **dimensions: _Entry
    ) -> PartitionSpec: ...
    @property
    def partitions(self) -> tuple[_Entry, ...]: ...
    def update(self, **changes: tuple[_Entry, ...] | frozenset[str]) -> PartitionSpec:
        """A copy with other partitions, unreduced or reduced axes."""
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int | slice) -> Any: ...
    def __add__(self, other: PartitionSpec | tuple[_Entry, ...]) -> PartitionSpec: ...
    def __radd__(self, other: tuple[_Entry, ...]) -> PartitionSpec: ...
    def index(self, value: _Entry) -> int: ...
    def count(self, value: _Entry) -> int: ...

P = PartitionSpec

def square_grid(count: int, axes: int) -> tuple[int, ...]:
    """The sizes of `axes` axes, as equal as the factors of `count` allow, largest first: 8 devices on two axes are 4 x 2."""

class Mesh(NamedAxes):
    """A grid of devices whose axes have names.

    Unlike in jax, a flat list of devices for several axes becomes the squarest grid; an array of devices keeps its shape.
    """

    devices: np.ndarray[Any, np.dtype[np.object_]]
    def __new__(
        cls, devices: np.ndarray[Any, Any] | Sequence[Any], axis_names: str | Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None
    ) -> Mesh: ...
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
    def local_mesh(self) -> Mesh: ...
    @property
    def abstract_mesh(self) -> AbstractMesh: ...
    @property
    def is_scalar(self) -> bool: ...
    def update(
        self, devices: np.ndarray[Any, Any] | Sequence[Device] | None = None, axis_names: str | Sequence[AxisName] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None
    ) -> Mesh:
        """A copy with other devices, axis names or axis types."""
    @property
    def is_multi_process(self) -> bool: ...
    def __enter__(self) -> Mesh: ...
    def __exit__(self, *exception: Any) -> bool: ...

def current_mesh() -> Mesh | None:
    """The innermost mesh of `with mesh:` and `with set_mesh(mesh):` on this thread; None if there is none."""

class set_mesh:
    """Sets the mesh for specifications without one, from now on, or as a context until it ends. None means no mesh."""

    def __init__(self, mesh: Mesh | None) -> None: ...
    def __enter__(self) -> Mesh | None: ...
    def __exit__(self, *exception: Any) -> bool: ...

def get_mesh() -> Mesh:
    """The mesh of set_mesh; the empty mesh if there is none."""
def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[AxisName], axis_types: AxisType | Sequence[AxisType] | None = None, *,
    devices: Sequence[Device] | None = None
) -> Mesh:
    """A mesh of the first devices; its axes are Explicit unless `axis_types` is passed."""
