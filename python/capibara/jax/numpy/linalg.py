"""jax.numpy.linalg."""
from capibara._modules import fill as _fill

_fill(__name__, "numpy.linalg")
