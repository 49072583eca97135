"""jax.random: keys, and draws from distributions."""
from capibara._modules import fill as _fill

_fill(__name__, "random")
