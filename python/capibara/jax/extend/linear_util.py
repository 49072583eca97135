"""jax.extend.linear_util: functions wrapped for tracing."""
from capibara._modules import explain_missing


class WrappedFun:
    """A function together with fixed keyword parameters, and what is known of it for messages."""

    def __init__(self, f, params=None, debug_info=None):
        self.f, self.params, self.debug_info = f, params or {}, debug_info

    @property
    def __name__(self):
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def call_wrapped(self, *args, **kwargs):
        return self.f(*args, **self.params, **kwargs)

    __call__ = call_wrapped


def wrap_init(f, params=None, *, debug_info=None):
    """A function as tracing takes it."""
    return WrappedFun(f, params, debug_info)


explain_missing(__name__)
