"""jax._src.mesh: meshes, and those without axes."""
import numpy as np

from capibara._modules import explain_missing
from capibara.jax.interpreters.pxla import thread_resources  # noqa: F401
from capibara.jax.sharding import AbstractMesh, AxisType, Mesh, get_abstract_mesh, use_abstract_mesh  # noqa: F401

empty_concrete_mesh = Mesh(np.empty((), dtype=object), ())
empty_abstract_mesh = AbstractMesh((), ())

explain_missing(__name__)
