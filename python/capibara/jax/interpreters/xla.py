"""jax.interpreters.xla: how values of a library's own types become arrays."""
import functools

from capibara._modules import explain_missing
from capibara._converters import value_converters as canonicalize_dtype_handlers  # noqa: F401
from capibara.jax._api import jit as _jit
from capibara.jax.core import eval_context as _eval_context
from capibara.jax.extend.backend import Backend  # noqa: F401


def apply_primitive(prim, *args, **params):
    """A primitive on concrete arrays, evaluated at once: one that has a lowering is compiled, so that this may be its implementation."""
    call = functools.partial(prim.bind, **params)
    with _eval_context():
        return _jit(call)(*args) if "_lowerings" in getattr(prim, "__dict__", {}) else call(*args)


explain_missing(__name__)
