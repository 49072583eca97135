"""jax._src.lax: the modules of jax.lax under jax's private names."""
from capibara._modules import explain_missing

explain_missing(__name__, later={"parallel": None})
