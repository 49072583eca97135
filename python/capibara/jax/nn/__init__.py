"""jax.nn: neural network functions."""
from capibara._modules import fill as _fill
from capibara.jax.nn import activations, initializers  # noqa: F401
from capibara.jax.nn._scaled_matmul import scaled_matmul  # noqa: F401

_fill(__name__, "nn")
