"""jax.interpreters.pxla: the current mesh of `with mesh:`, under the name that older programs use."""
from capibara._modules import explain_missing
from capibara.jax._mesh import Mesh, entered_mesh


class _Environment:
    """The environment of a thread."""

    @property
    def physical_mesh(self):
        import numpy as np
        return entered_mesh() or Mesh(np.empty((), dtype=object), ())


class _ThreadResources:
    env = _Environment()


thread_resources = _ThreadResources()
explain_missing(__name__)
