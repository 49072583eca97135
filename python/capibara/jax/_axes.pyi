"""Types of named axes, and of abstract meshes."""
import collections
import enum
from collections.abc import Iterable, Mapping, Sequence

from capibara._stub_types import AxisName
from capibara.jax._mesh import Mesh

class AxisType(enum.Enum):
    """What determines sharding along a mesh axis: the compiler, the types of values, or the function inside shard_map."""

    Auto = 0
    Explicit = 1
    Manual = 2

class ManualAxisType:
    """The manual axes along which the values of a type differ between devices, are partial sums, or have summed cotangents."""

    varying: frozenset[AxisName]
    unreduced: frozenset[AxisName]
    reduced: frozenset[AxisName]
    def __init__(
        self,
        *,
        varying: Iterable[AxisName] = ...,
        unreduced: Iterable[AxisName] = ...,
        reduced: Iterable[AxisName] = ...,
    ) -> None: ...
    @property
    def vur(self) -> frozenset[AxisName]: ...
    @property
    def empty(self) -> bool: ...
    def invarying(self, mesh: Mesh) -> frozenset[AxisName]: ...
    def update(self, **changes: Iterable[AxisName]) -> ManualAxisType: ...

class NamedAxes:
    """The common base of concrete and abstract meshes: axes with names and sizes."""

    axis_names: tuple[AxisName, ...]
    axis_types: tuple[AxisType, ...]
    @property
    def shape(self) -> collections.OrderedDict[AxisName, int]: ...
    @property
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]: ...
    @property
    def auto_axes(self) -> tuple[AxisName, ...]: ...
    @property
    def explicit_axes(self) -> tuple[AxisName, ...]: ...
    @property
    def manual_axes(self) -> tuple[AxisName, ...]: ...
    @property
    def are_all_axes_auto(self) -> bool: ...
    @property
    def are_all_axes_explicit(self) -> bool: ...
    @property
    def are_all_axes_manual(self) -> bool: ...

class AbstractDevice:
    """The known properties of an abstract mesh's devices."""

    device_kind: str
    num_cores: int | None
    platform: str | None
    def __init__(self, device_kind: str, num_cores: int | None = None, platform: str | None = None) -> None: ...

class AbstractMesh(NamedAxes):
    """Named axes and their sizes, without devices."""

    axis_sizes: tuple[int, ...]
    abstract_device: AbstractDevice | None
    def __init__(
        self, axis_sizes: Sequence[int], axis_names: str | Sequence[AxisName], axis_types: AxisType | Sequence[AxisType] | None = None,
        *, abstract_device: AbstractDevice | None = None
    ) -> None: ...
    def update_axis_types(self, changes: Mapping[AxisName, AxisType]) -> AbstractMesh:
        """A copy with the axis types replaced for the axes in a dictionary."""
    @property
    def size(self) -> int: ...
    @property
    def empty(self) -> bool: ...
    @property
    def abstract_mesh(self) -> AbstractMesh: ...

def abstract(mesh: Mesh) -> AbstractMesh:
    """The abstract mesh of a mesh."""
