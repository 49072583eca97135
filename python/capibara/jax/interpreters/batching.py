"""jax.interpreters.batching: rules of primitives for vmap."""
from capibara._modules import explain_missing
from capibara.jax import numpy as _jnp
from capibara.jax.interpreters.ad import _Rules

not_mapped = None
primitive_batchers = _Rules("def_batch", "batch")


class _AxisRules:
    """Rules that are told of the mapped axis: rule(size, name, trace, arguments, dims, **params); its name is None."""

    def __init__(self):
        self._known = {}

    def __setitem__(self, primitive, rule):
        def plain(args, dims, **params):
            size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
            return rule(size, None, None, args, dims, **params)
        primitive.def_batch(plain)
        self._known[primitive] = rule

    def __getitem__(self, primitive):
        return self._known[primitive]

    def __contains__(self, primitive):
        return primitive in self._known

    def get(self, primitive, default=None):
        return self._known.get(primitive, default)


axis_primitive_batchers = _AxisRules()


def moveaxis(x, source, destination):
    """An array with one axis moved."""
    return _jnp.moveaxis(x, source, destination)


def bdim_at_front(x, dim, size):
    """A value with the mapped axis in front, repeated where it is not mapped."""
    return _jnp.broadcast_to(x, (size,) + _jnp.shape(x)) if dim is None else _jnp.moveaxis(x, dim, 0)


def defvectorized(primitive):
    """A primitive that works elementwise: the mapped axis stays where it is."""
    def rule(args, dims, **params):
        return primitive.bind(*args, **params), dims[0]
    primitive_batchers[primitive] = rule


def defbroadcasting(primitive):
    """An elementwise primitive of several operands."""
    def rule(args, dims, **params):
        size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
        args = [bdim_at_front(a, d, size) for a, d in zip(args, dims)]
        rank = max(a.ndim for a in args)
        args = [a.reshape(a.shape[:1] + (1,) * (rank - a.ndim) + a.shape[1:]) for a in args]
        return primitive.bind(*_jnp.broadcast_arrays(*args), **params), 0

    primitive_batchers[primitive] = rule


explain_missing(__name__)
