"""Fused operations: each is a composition of jax's operations, for which a device may have a kernel of its own."""
from capibara._modules import fill as _fill

_fill(__name__, "capibara.kernels")
