"""jax.ops: reductions over segments."""
from capibara._modules import fill as _fill

_fill(__name__, "ops")
