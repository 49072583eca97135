"""jax.memory: the memory spaces of arrays."""
from capibara._modules import explain_missing
from capibara.jax._placing import Space  # noqa: F401

explain_missing(__name__)
