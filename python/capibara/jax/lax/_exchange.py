"""psend and precv of jax.lax: a permutation over a named axis in two steps."""
from typing import Any, Sequence

from capibara import _core, _tracebacks
from capibara.jax import tree_util
from capibara.jax.lax._control import COLLECTIVES


@tree_util.register_pytree_node_class
class SendToken:
    """The result of psend: identifies the value for precv, and keeps its order through optimization_barrier and jit."""

    def __init__(self, value: Any, axis_name: tuple, perm: tuple):
        self._value, self.axis_name, self.perm = value, axis_name, perm

    def tree_flatten(self):
        return (self._value,), (self.axis_name, self.perm)

    @classmethod
    def tree_unflatten(cls, sent, children):
        return cls(*children, *sent)

    def __repr__(self):
        return f"SendToken(axis_name={self.axis_name}, perm={self.perm})"


def _route(axis_name, perm):
    names = tuple(axis_name) if isinstance(axis_name, (list, tuple)) else (axis_name,)
    return names, tuple((int(source), int(target)) for source, target in perm)


def psend(x: Any, axis_name: str | Sequence[str], perm: Sequence[tuple[int, int]]) -> Any:
    """Sends each leaf along (source, destination) pairs of indices on a named axis; returns a token for `precv`."""
    names, pairs = _route(axis_name, perm)
    _core.library_function("lax", "axis_size")(names)  # raises if an axis is not bound
    return tree_util.tree_map(lambda leaf: SendToken(_core.as_array(leaf), names, pairs), x)


def precv(token: Any, out_shape: Any, axis_name: str | Sequence[str], perm: Sequence[tuple[int, int]]) -> _core.Array:
    """The value that `psend` sent with this token, at its destinations; zeros elsewhere."""
    names, pairs = _route(axis_name, perm)
    if not isinstance(token, SendToken):
        raise TypeError(f"precv: the token must come from the psend whose value is received, got {type(token).__name__}: nothing would "
                        "ever be sent")
    if (token.axis_name, token.perm) != (names, pairs):
        raise ValueError(f"precv: axis_name and perm must be those of the psend, {token.axis_name} and {token.perm}, got {names} and "
                         f"{pairs}: the receivers would wait for ever")
    sent = token._value
    if tuple(out_shape.shape) != tuple(sent.shape) or _core.canonical_dtype(out_shape.dtype) != sent.dtype:
        raise ValueError(f"precv: out_shape must be what was sent, {sent.dtype}{list(sent.shape)}, got "
                         f"{out_shape.dtype}{list(out_shape.shape)}")
    return COLLECTIVES["ppermute"](sent, names, pairs)


__all__ = ["psend", "precv"]
_tracebacks.guard(__name__)
