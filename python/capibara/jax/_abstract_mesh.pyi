"""Types of meshes without devices."""
from typing import Any

from capibara.jax._axes import AbstractDevice as AbstractDevice
from capibara.jax._axes import AbstractMesh as AbstractMesh

no_mesh: AbstractMesh

class use_abstract_mesh:
    """The axes that programs see, while the context lasts."""

    def __init__(self, mesh: AbstractMesh) -> None: ...
    def __enter__(self) -> AbstractMesh: ...
    def __exit__(self, *exception: Any) -> bool: ...

def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in whose context the program is; without one, the mesh without axes."""
