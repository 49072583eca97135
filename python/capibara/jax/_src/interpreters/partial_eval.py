"""jax._src.interpreters.partial_eval: names of jax.interpreters.partial_eval."""
from capibara._modules import explain_missing
from capibara.jax.interpreters.partial_eval import *  # noqa: F401,F403

explain_missing(__name__)
