"""jax.scipy.cluster."""
from capibara._modules import explain_missing
from capibara.jax.scipy.cluster import vq  # noqa: F401

explain_missing(__name__)
