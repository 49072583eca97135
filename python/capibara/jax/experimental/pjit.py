"""jax.experimental.pjit: the older name of jit."""
from capibara._modules import explain_missing
from capibara.jax._partition import pjit  # noqa: F401

explain_missing(__name__)
