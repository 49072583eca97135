"""jax.experimental.xla_metadata: notes for XLA on values and operations. Programs are the same with and without them."""
import functools

from capibara._modules import explain_missing
from capibara.jax import tree_util


class XlaMetadataContextManager:
    """A context whose operations have these notes, or a decorator of functions that run in it."""

    def __init__(self, updates: dict[str, object]) -> None:
        self.updates = updates

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return False

    def __call__(self, f):
        if hasattr(f, "lower"):  # of jit: its stages stay there
            return f
        return functools.wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))


def set_xla_metadata(x: object = None, **kwargs: object):
    """Notes on the values of a tree, which come back as they are; without one a context or decorator."""
    return XlaMetadataContextManager(kwargs) if x is None else tree_util.tree_map(lambda value: value, x)


explain_missing(__name__)
