"""jax.experimental.xla_metadata: metadata for XLA on values and operations. It does not change programs."""
import functools

from capibara._modules import explain_missing
from capibara.jax import tree_util


class XlaMetadataContextManager:
    """A context whose operations carry the metadata, or a decorator for functions that run in it."""

    def __init__(self, updates: dict[str, object]) -> None:
        self.updates = updates

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return False

    def __call__(self, f):
        if hasattr(f, "lower"):  # a jitted function: keep its stages
            return f
        return functools.wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))


def set_xla_metadata(x: object = None, **kwargs: object):
    """Attaches metadata to the values of a tree, which are returned unchanged; without a tree, a context or decorator."""
    return XlaMetadataContextManager(kwargs) if x is None else tree_util.tree_map(lambda value: value, x)


explain_missing(__name__)
