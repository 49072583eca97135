"""jax.interpreters.batching: rules of primitives for vmap."""
from typing import NamedTuple

from capibara import _vmappables
from capibara._modules import explain_missing
from capibara.jax import numpy as _jnp
from capibara.jax.interpreters.ad import _Rules

not_mapped = None


def register_vmappable(data_type, spec_type, axis_size_type, to_elt, from_elt, make_iota):
    """Registers how vmap maps over objects of a class.

    to_elt(cont, axis_size, value, spec) returns one element of a value, where cont(array, axis) is one element of an array along an
    axis; from_elt(cont, axis_size, element, spec) returns the value from an element, where cont(axis_size, array, axis) is the array
    of all elements. Entries of in_axes and out_axes for such objects are specs, of the type spec_type.
    """
    if data_type in _vmappables.registered:
        raise ValueError(f"register_vmappable: {data_type.__name__} is registered already")
    _vmappables.register(data_type, spec_type, to_elt, from_elt)


def unregister_vmappable(data_type):
    """Undoes register_vmappable."""
    _vmappables.registered.pop(data_type, None)


primitive_batchers = _Rules("def_batch", "batch")


class AxisData(NamedTuple):
    """A rule's information about the mapped axis; an unnamed axis has the name None."""

    name: str | None
    size: int
    spmd_name: None = None
    explicit_mesh_axis: None = None


class _AxisRules(dict):
    """{primitive: rule that takes the mapped axis}; `adapt` converts a rule to the form that the core calls."""

    def __init__(self, adapt):
        self._adapt = adapt

    def __setitem__(self, primitive, rule):
        primitive.def_axis_batch(self._adapt(rule))
        super().__setitem__(primitive, rule)


# rule(axis size, axis name, trace, arguments, dims, **params), where the trace is None, and rule(AxisData, arguments, dims, **params)
axis_primitive_batchers = _AxisRules(lambda rule: rule)
fancy_primitive_batchers = _AxisRules(
    lambda rule: lambda size, name, _, args, dims, **params: rule(AxisData(name, size), args, dims, **params))


def moveaxis(x, source, destination):
    """An array with one axis moved."""
    return _jnp.moveaxis(x, source, destination)


def bdim_at_front(x, dim, size):
    """A value with the mapped axis in front; unmapped values are broadcast."""
    return _jnp.broadcast_to(x, (size,) + _jnp.shape(x)) if dim is None else _jnp.moveaxis(x, dim, 0)


def broadcast(x, size, axis, mesh_axis=None):
    """A value broadcast along a new axis."""
    if mesh_axis is not None:
        raise NotImplementedError(f"batching.broadcast: the new axis cannot be split over a mesh axis, got mesh_axis={mesh_axis!r}")
    return _jnp.broadcast_to(_jnp.expand_dims(x, axis), _jnp.shape(x)[:axis] + (size,) + _jnp.shape(x)[axis:])


def defvectorized(primitive):
    """Defines an elementwise primitive: the mapped axis keeps its position."""
    def rule(args, dims, **params):
        return primitive.bind(*args, **params), dims[0]
    primitive_batchers[primitive] = rule


def defbroadcasting(primitive):
    """Defines an elementwise primitive of several operands."""
    def rule(args, dims, **params):
        size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
        args = [bdim_at_front(a, d, size) for a, d in zip(args, dims)]
        rank = max(a.ndim for a in args)
        args = [a.reshape(a.shape[:1] + (1,) * (rank - a.ndim) + a.shape[1:]) for a in args]
        return primitive.bind(*_jnp.broadcast_arrays(*args), **params), 0

    primitive_batchers[primitive] = rule


def defreducer(primitive, ident=None):
    """Defines a primitive that reduces over its parameter `axes`."""
    def rule(args, dims, *, axes, **params):
        (x,), (dim,) = args, dims
        moved = tuple(axis + (axis >= dim) for axis in axes)
        return primitive.bind(x, axes=moved, **params), dim - sum(axis < dim for axis in moved)

    primitive_batchers[primitive] = rule


explain_missing(__name__)
