"""jax.scipy.signal."""
from capibara._modules import fill as _fill

_fill(__name__, "scipy.signal")
