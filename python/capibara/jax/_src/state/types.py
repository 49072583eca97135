"""jax._src.state.types: the types of mutable arrays, and the effects of equations on them."""
from capibara import _core
from capibara._effects import AccumEffect, ReadEffect, RefEffect, WriteEffect  # noqa: F401
from capibara._modules import explain_missing
from capibara.jax.ref import _View


class _IsRefType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _core.ShapedArray) and value._is_ref


class AbstractRef(metaclass=_IsRefType):
    """The type of a mutable array: a ShapedArray that is marked as a ref."""

    def __new__(cls, inner_aval):
        return _core.ref_type(inner_aval)


def shaped_array_ref(shape, dtype, weak_type=False):
    """The type of a mutable array of a shape and dtype."""
    return AbstractRef(_core.ShapedArray(shape, dtype, weak_type))


TransformedRef = _View
explain_missing(__name__)
