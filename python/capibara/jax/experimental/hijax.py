"""jax.experimental.hijax: types of values above arrays. capibara only traces arrays: these classes can be subclassed but not used.

Libraries subclass these classes on import and use them only on request (`flax.nnx` variables with hijax=True).
"""
from collections.abc import Callable
from typing import Any, NoReturn

from capibara._effects import Effect  # noqa: F401
from capibara._modules import explain_missing
from capibara._types import Zero  # noqa: F401
from capibara.jax._src.state.types import AbstractRef  # noqa: F401
from capibara.jax.core import Primitive, ShapedArray  # noqa: F401
from capibara.jax.interpreters.ad import instantiate_zeros, is_undefined_primal  # noqa: F401


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(f"jax.experimental.hijax: {what} needs values above arrays, which capibara does not trace; "
                              "keep arrays in a pytree (in flax.nnx: variables without hijax=True)")


class AbstractValue:
    """The type of a value."""


class HiType(AbstractValue):
    """A type above arrays."""

    def lo_ty(self) -> NoReturn:
        """The types of the arrays that represent it."""
        _refuse(type(self).__name__)


class MutableHiType(HiType):
    """A type of mutable values."""


class HiPspec:
    """The sharding of a value above arrays over a mesh."""


class HiPrimitive(Primitive):
    """An operation on values above arrays."""

    def bind(self, *args: object, **params: object) -> NoReturn:
        """Refused."""
        _refuse(f"the primitive '{self.name}' of {len(args)} values and {len(params)} parameters")


class VJPHiPrimitive:
    """An operation with a backward pass on values above arrays."""

    def __call__(self, *args: object) -> NoReturn:
        _refuse(f"{type(self).__name__} of {len(args)} values")


class AvalQDD:
    """A type together with the state that changes during tracing."""

    def __init__(self, aval: object, qdd: object) -> None:
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD(AvalQDD):
    """A type together with a mutable cell for that state."""


class aval_method:  # noqa: N801 (jax's name)
    """A function that becomes a method of traced values of a type."""

    def __init__(self, fun: Callable[..., object]) -> None:
        self.fun = fun


class aval_property:  # noqa: N801
    """A function that becomes a property of traced values of a type."""

    def __init__(self, fget: Callable[..., object]) -> None:
        self.fget = fget


class _AllowedEffects:
    def __init__(self):
        self._types = set()

    def add_type(self, kind):
        """Allows control flow to contain operations with this kind of effect."""
        self._types.add(kind)

    def contains(self, effect):
        """True if control flow may contain the effect."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _AllowedEffects()
_types = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], object]) -> None:
    """Registers the type of a class of values; passing one to a traced function raises an error."""
    _types[val_cls] = typeof_fn


explain_missing(__name__)
