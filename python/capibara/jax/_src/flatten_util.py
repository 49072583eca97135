"""jax._src.flatten_util: names of jax.flatten_util."""
from capibara._modules import explain_missing
from capibara.jax.flatten_util import ravel_pytree  # noqa: F401

explain_missing(__name__)
