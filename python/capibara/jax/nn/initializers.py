"""jax.nn.initializers: functions that draw initial weights."""
from typing import Protocol as _Protocol
from typing import runtime_checkable as _runtime_checkable

from capibara._modules import fill as _fill


@_runtime_checkable
class Initializer(_Protocol):
    """A function (key, shape, dtype) -> array."""

    def __call__(self, key, shape, dtype=None, out_sharding=None): ...


_fill(__name__, "nn.initializers")
