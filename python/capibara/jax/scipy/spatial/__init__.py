"""jax.scipy.spatial."""
from capibara._modules import explain_missing
from capibara.jax.scipy.spatial import transform  # noqa: F401

explain_missing(__name__)
