"""Types of users above arrays: classes to derive from, and what types of arrays answer beside them."""
import functools
from collections.abc import Hashable

from capibara import _lifting
from capibara._lifted_maps import MappingSpec  # noqa: F401
from capibara._lifting import FlatTree
from capibara.jax import core
from capibara.jax.core import ShapedArray
from capibara.jax.interpreters import ad


class _TypeClass(type):
    """Makes the types of arrays instances of AbstractValue too."""

    def __instancecheck__(cls, value):
        return super().__instancecheck__(value) or cls is AbstractValue and isinstance(value, ShapedArray)


class AbstractValue(metaclass=_TypeClass):
    """The type of a value."""

    is_high = has_qdd = False

    def _text(self, short_dtypes=False, mesh_axis_types=False):
        """The type as text; a subclass decides what is short."""
        return repr(self)

    str_short = _text

    def to_ct_aval(self):
        """The type of cotangents."""
        return self.to_tangent_aval()

    def normalize(self):
        """The type without weak types."""
        return self

    def _missing(self, method):
        return NotImplementedError(f"{type(self).__name__}: this use of the type needs its method '{method}'; define it in the class")


Ty = LoType = AbstractValue
QDD = Hashable


def _required(name):
    def method(self, *_, **__):
        raise self._missing(name)
    method.__name__ = name
    return method


class HiType(AbstractValue):
    """A type above arrays, whose values do not change: lo_ty has the types of its arrays, lower_val and raise_val convert values."""

    is_high = True
    for _name in ("lo_ty", "lower_val", "raise_val", "to_tangent_aval", "vspace_zero", "vspace_add", "dec_rank", "inc_rank",
                  "leading_axis_spec", "shard", "unshard", "nospec"):
        locals()[_name] = _required(_name)
    del _name


class aval_method:  # noqa: N801 (jax's name)
    """A function that becomes a method of traced values of a type."""

    def __init__(self, fun):
        self.fun = fun

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self.fun, instance)


class aval_property:  # noqa: N801
    """A function that becomes a property of traced values of a type."""

    def __init__(self, fget):
        self.fget = fget

    def __get__(self, instance, owner=None):
        return self if instance is None else self.fget(instance)


hijax_method = aval_method


def cur_qdd(value):
    """What the type of a mutable value depends on at this point of the program."""
    return _lifting.current_state(value)


class MutableHiType(AbstractValue):
    """A type of mutable values, whose arrays may change in number and type."""

    is_high = has_qdd = True
    is_writer = False
    type_state = aval_method(cur_qdd)
    for _name in ("lo_ty_qdd", "new_from_loval", "read_loval", "update_from_loval", "to_tangent_aval"):
        locals()[_name] = _required(_name)
    del _name

    def lo_ty(self):
        raise TypeError(f"{type(self).__name__}: the arrays of a mutable value depend on its state; use lo_ty_qdd")

    def read_loval_in(self, state, value):
        """The arrays before a call."""
        return self.read_loval(state, value)

    def read_loval_out(self, state, value):
        """The arrays after a call, as a FlatTree."""
        return FlatTree.flatten(self.read_loval(state, value))

    def update_from_loval2(self, state, value, arrays):
        """Updates the value from the FlatTree of read_loval_out."""
        self.update_from_loval(state, value, *arrays.unflatten())


class AvalQDD:
    """A type together with the state of a mutable value."""

    is_high = True
    has_qdd = True

    def __init__(self, aval, qdd):
        self.aval, self.qdd = aval, qdd


class MutableQuasiDynamicData:
    """A cell with the state of a mutable value."""

    def __init__(self, val):
        self.init_val = self.cur_val = val

    def update(self, val):
        """Sets the state."""
        self.cur_val = val


class AvalMutableQDD(AvalQDD):
    """A type together with a cell for the state of a mutable value."""

    def __init__(self, aval, mutable_qdd):
        self.aval, self.mutable_qdd = aval, mutable_qdd


def register_hitype(val_cls, typeof_fn):
    """Registers the type of a class of values above arrays."""
    _lifting.register(val_cls, typeof_fn)


class HiPspec:
    """The sharding of a value above arrays over a mesh: to_lo has the specs of its arrays."""

    def to_lo(self):
        raise NotImplementedError(f"{type(self).__name__}: this use of the spec needs its method 'to_lo'; define it in the class")

    def to_tangent_spec(self):
        """The spec of tangents."""
        raise NotImplementedError(f"{type(self).__name__}: this use of the spec needs its method 'to_tangent_spec'; define it in the class")

    def to_ct_spec(self):
        """The spec of cotangents."""
        raise NotImplementedError(f"{type(self).__name__}: this use of the spec needs its method 'to_ct_spec'; define it in the class")


# Arrays, where the rules of values above arrays meet them.
ShapedArray.lo_ty = lambda self: [self]
ShapedArray.lower_val = lambda _, value: [value]
ShapedArray.raise_val = lambda _, value: value
ShapedArray.vspace_zero = lambda self: ad.zeros_like_aval(self)
ShapedArray.vspace_add = lambda _, x, y: ad.add_jaxvals(x, y)
ShapedArray.is_high = ShapedArray.has_qdd = False
if not hasattr(ShapedArray, "to_ct_aval"):
    ShapedArray.to_ct_aval = ShapedArray.to_tangent_aval
if not hasattr(ShapedArray, "normalize"):
    ShapedArray.normalize = lambda self: self.update(weak_type=False)
ShapedArray.leading_axis_spec = lambda _: 0
ShapedArray.dec_rank = lambda self, size, spec: core.mapped_aval(size, spec, self)
ShapedArray.inc_rank = lambda self, size, spec: core.unmapped_aval(size, spec, self)
