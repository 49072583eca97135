"""jax.profiler: annotations, which do nothing while no profile is taken."""
import functools

from capibara._modules import explain_missing


class TraceAnnotation:
    """A named span of a profile; no profile is taken, so that entering it does nothing."""

    def __init__(self, name, **metadata):
        self._name = name

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


class StepTraceAnnotation(TraceAnnotation):
    """A named step of a profile."""


def annotate_function(func=None, name=None, **kwargs):
    """A function whose calls are spans of a profile."""
    if func is None:
        return functools.partial(annotate_function, name=name, **kwargs)

    @functools.wraps(func)
    def wrapper(*args, **named):
        with TraceAnnotation(name or getattr(func, "__qualname__", "function"), **kwargs):
            return func(*args, **named)

    return wrapper


explain_missing(__name__)
