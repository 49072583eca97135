"""jax.experimental.hijax: types of values above arrays. capibara traces arrays alone: classes may be derived, and their use is refused.

Libraries derive from these classes where they are imported and use them only when told to (`flax.nnx` variables with hijax=True).
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
        """The types of the arrays that it stands for."""
        _refuse(type(self).__name__)


class MutableHiType(HiType):
    """A type of values that change."""


class HiPspec:
    """How a value above arrays is laid out over a mesh."""


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
    """A type together with what changes of it while a function is traced."""

    def __init__(self, aval: object, qdd: object) -> None:
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD(AvalQDD):
    """A type together with a cell of what changes of it."""


class aval_method:  # noqa: N801 (jax's name)
    """A function that traced values of a type have as a method."""

    def __init__(self, fun: Callable[..., object]) -> None:
        self.fun = fun


class aval_property:  # noqa: N801
    """A function that traced values of a type have as a property."""

    def __init__(self, fget: Callable[..., object]) -> None:
        self.fget = fget


class _AllowedEffects:
    def __init__(self):
        self._types = set()

    def add_type(self, kind):
        """Lets control flow hold operations with such an effect."""
        self._types.add(kind)

    def contains(self, effect):
        """Whether control flow may hold it."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _AllowedEffects()
_types = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], object]) -> None:
    """Notes the type of a class of values; passing one of them to a traced function is refused there."""
    _types[val_cls] = typeof_fn


explain_missing(__name__)
