"""jax._src.hijax: types of users above arrays, operations on their values with rules of their own, boxes and logs."""
import functools
from dataclasses import dataclass
from typing import Any

from capibara._modules import explain_missing
from capibara.jax._hi_boxes import (  # noqa: F401
    Box,
    BoxTy,
    BoxTypeState,
    Log,
    LogTy,
    box_effect,
    box_get,
    box_get_p,
    box_set,
    box_set_p,
    log_append,
    log_effect,
    log_extend,
    log_read,
    new_box,
    new_box_p,
    new_log,
)
from capibara.jax._hi_operations import HiPrimitive  # noqa: F401
from capibara.jax._hi_tree_operations import VJPHiPrimitive  # noqa: F401
from capibara.jax._hi_types import (  # noqa: F401
    QDD,
    AbstractValue,
    AvalMutableQDD,
    AvalQDD,
    HiPspec,
    HiType,
    LoType,
    MappingSpec,
    MutableHiType,
    Ty,
    aval_method,
    aval_property,
    hijax_method,
    register_hitype,
)
from capibara.jax.core import ShapedArray  # noqa: F401
from capibara.jax.custom_derivatives import custom_vjp
from capibara.jax.tree_util import register_static


@register_static
@dataclass(frozen=True, slots=True)
class Static:
    """A value that is part of a tree's structure."""

    val: Any


class custom_vjp3:  # noqa: N801
    """A function with rules for its derivative in reverse mode, given by defvjp, as an operation above arrays."""

    def __init__(self, f, nondiff_argnums=(), nondiff_argnames=()):
        self.f = f
        self._own = custom_vjp(f, nondiff_argnums, nondiff_argnames)
        functools.update_wrapper(self, f)

    def defvjp(self, fwd, bwd, *, symbolic_zeros=False, optimize_remat=False):
        """Sets the rules."""
        self._own.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        return self

    def __call__(self, *args, **kwargs):
        return self._own(*args, **kwargs)


explain_missing(__name__)
