"""jax.scipy.integrate."""
from capibara._modules import explain_missing
from capibara.jax.numpy import trapezoid  # noqa: F401

explain_missing(__name__)
