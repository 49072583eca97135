"""Types of abstract meshes."""
from typing import Any

from capibara.jax._axes import AbstractDevice as AbstractDevice
from capibara.jax._axes import AbstractMesh as AbstractMesh

no_mesh: AbstractMesh

class use_abstract_mesh:
    """A context that sets the mesh axes visible to programs."""

    def __init__(self, mesh: AbstractMesh) -> None: ...
    def __enter__(self) -> AbstractMesh: ...
    def __exit__(self, *exception: Any) -> bool: ...

def get_abstract_mesh() -> AbstractMesh:
    """The axes of the context mesh; the empty mesh if there is none."""
