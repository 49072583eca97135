"""jax._src.xla_bridge: the backends that run programs."""
from capibara._modules import explain_missing
from capibara.jax.extend.backend import backends, get_backend  # noqa: F401

_backends = {}  # XLA clients: none

explain_missing(__name__)
