"""jax.random: keys, and sampling from distributions."""
from capibara import _core
from capibara._modules import fill as _fill

random_gamma_p = next(primitive for primitive in _core.catalog() if primitive.name == "random_gamma")
_fill(__name__, "random")
