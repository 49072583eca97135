"""jax._src.xla_bridge: what runs programs."""
from capibara._modules import explain_missing
from capibara.jax.extend.backend import backends, get_backend  # noqa: F401

_backends = {}  # clients of XLA, of which there are none

explain_missing(__name__)
