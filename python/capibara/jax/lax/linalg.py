"""jax.lax.linalg: matrix decompositions."""
from capibara._modules import fill as _fill

_fill(__name__, "lax.linalg")
