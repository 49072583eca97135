"""jax.api_util: pieces of the transforms that libraries use."""
from capibara import _core
from capibara._modules import explain_missing


def shaped_abstractify(x):
    """The abstract type of a value, or of something with a shape and a dtype."""
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, _core.Array):
        return _core.ShapedArray(x.shape, x.dtype, getattr(x, "weak_type", False))
    return _core.as_array(x).aval


def debug_info(name, fun, args, kwargs, **_):
    """What is known of a function for messages: its name."""
    return getattr(fun, "__name__", name)


explain_missing(__name__)
