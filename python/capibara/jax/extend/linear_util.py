"""jax.extend.linear_util: functions wrapped for tracing."""
from capibara._modules import explain_missing


class WrappedFun:
    """A function together with fixed keyword parameters."""

    def __init__(self, f, params=None):
        self.f, self.params = f, params or {}

    def call_wrapped(self, *args, **kwargs):
        return self.f(*args, **self.params, **kwargs)

    __call__ = call_wrapped


def wrap_init(f, params=None, *, debug_info=None):
    """A function as tracing takes it."""
    return WrappedFun(f, params)


explain_missing(__name__)
