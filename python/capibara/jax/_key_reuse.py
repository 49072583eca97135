"""jax_debug_key_reuse: while enabled, reusing a key is an error."""
import contextlib
import threading

from capibara import _core
from capibara.jax._api import make_jaxpr

_default = False
_own = threading.local()  # the setting of this thread's scopes


def is_on():
    return getattr(_own, "value", _default)


def set_default(value):
    """Enables or disables the check for the process."""
    global _default
    _default = bool(value)
    if _default:
        _core.set_key_hook(_checked_call)


class scope(contextlib.ContextDecorator):
    """A context that enables or disables the check on this thread."""

    def __init__(self, new_val=True):
        self._value, self._before = bool(new_val), []

    def __enter__(self):
        self._before.append(dict(vars(_own)))
        _own.value = self._value
        if self._value:
            _core.set_key_hook(_checked_call)

    def __exit__(self, *exception):
        before = self._before.pop()
        vars(_own).clear()
        vars(_own).update(before)
        return False


def _is_key(leaf):
    from capibara.jax import dtypes
    return isinstance(leaf, _core.Array) and not isinstance(leaf, _core.Tracer) and dtypes.issubdtype(leaf.dtype, dtypes.prng_key)


def _checked_call(function, args, kwargs):
    """Calls a jitted function or one of jax.random, and tracks its keys."""
    if not is_on():
        return function(*args, **kwargs)
    leaves = _core.tree_leaves((args, kwargs))
    if any(isinstance(leaf, _core.Tracer) for leaf in leaves):
        return function(*args, **kwargs)
    keys, signature, name = _signature(function, args, kwargs, leaves)
    from capibara.jax.errors import KeyReuseError
    from capibara.jax.experimental.key_reuse._core import _either, _overlap
    for sink in signature.sinks:
        if sink.idx in keys and _overlap(getattr(keys[sink.idx], "_consumed", False), sink.mask) and keys[sink.idx].size:
            raise KeyReuseError(f"Previously-consumed key passed to {name} at index {sink.idx}")
    result = function(*args, **kwargs)
    for sink in signature.sinks:
        if sink.idx in keys:
            keys[sink.idx]._consumed = _either(getattr(keys[sink.idx], "_consumed", False), sink.mask)
    return result


def _signature(function, args, kwargs, leaves):
    """({input: key}, signature, name for errors) of a call."""
    from capibara.jax.experimental.key_reuse._core import jaxpr_type_signature
    if hasattr(function, "trace"):  # a jitted function's program is cached, or needed anyway
        traced = function.trace(*args, **kwargs)
        program = traced.jaxpr.jaxpr
        dynamic = [leaf for leaf in leaves if isinstance(leaf, _core.Array) or _is_number(leaf)]
        first = len(program.constvars) + len(program.invars) - len(dynamic)
        keys = {first + i: leaf for i, leaf in enumerate(dynamic) if _is_key(leaf)}
        return keys, jaxpr_type_signature(program), "jit-compiled function"
    places = [i for i, leaf in enumerate(leaves) if _is_key(leaf)]
    tree = _core.tree_structure((args, kwargs))

    def of_keys(*values):
        own = list(leaves)
        for i, value in zip(places, values):
            own[i] = value
        given, named = tree.unflatten(own)
        return function(*given, **named)

    program = make_jaxpr(of_keys)(*[leaves[i] for i in places]).jaxpr
    name = program.eqns[0].primitive.name if len(program.eqns) == 1 else "jit-compiled function"
    return {i: leaves[place] for i, place in enumerate(places)}, jaxpr_type_signature(program), "jit-compiled function" if name == "jit" else name


def _is_number(leaf):
    import numpy as np
    return isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic))
