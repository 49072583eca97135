"""Types of meshes without devices."""
from collections.abc import Sequence

from capibara._stub_types import AxisName
from capibara.jax._mesh import AxisType, NamedAxes

class AbstractMesh(NamedAxes):
    """Named axes and their sizes, without devices."""

    axis_sizes: tuple[int, ...]
    def __init__(
        self, axis_sizes: Sequence[int], axis_names: str | Sequence[AxisName], axis_types: AxisType | Sequence[AxisType] | None = None
    ) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def empty(self) -> bool: ...
    @property
    def abstract_mesh(self) -> AbstractMesh: ...
    @property
    def auto_axes(self) -> tuple[AxisName, ...]: ...
    @property
    def are_all_axes_auto(self) -> bool: ...

no_mesh: AbstractMesh

def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in whose context the program is; without one, the mesh without axes."""
