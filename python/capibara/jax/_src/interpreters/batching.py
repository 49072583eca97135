"""jax._src.interpreters.batching: names of jax.interpreters.batching."""
from capibara._modules import explain_missing
from capibara.jax.interpreters.batching import *  # noqa: F401,F403

explain_missing(__name__)
