"""jax._src.mesh: meshes, including the empty mesh."""
import numpy as np

from capibara._modules import explain_missing
from capibara.jax._mesh import set_mesh_in_use
from capibara.jax.interpreters.pxla import thread_resources  # noqa: F401
from capibara.jax.sharding import AbstractMesh, AxisType, Mesh, get_abstract_mesh, use_abstract_mesh  # noqa: F401

empty_concrete_mesh = Mesh(np.empty((), dtype=object), ())
empty_abstract_mesh = AbstractMesh((), ())


class EMPTY_ENV:
    """The environment of a thread outside all meshes."""
    physical_mesh = empty_concrete_mesh


def get_concrete_mesh():
    """The mesh of set_mesh; the empty mesh if there is none."""
    return set_mesh_in_use() or empty_concrete_mesh



explain_missing(__name__)
