"""jax.scipy.fft."""
from capibara._modules import fill as _fill

_fill(__name__, "scipy.fft")
