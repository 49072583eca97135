"""jax._src.interpreters: names of jax.interpreters."""
from capibara._modules import explain_missing
from capibara.jax._src.interpreters import ad, batching, partial_eval  # noqa: F401

explain_missing(__name__)
