"""jax.experimental.hijax: types of users above arrays, and operations on their values with rules of their own."""
from capibara._effects import control_flow_allowed_effects  # noqa: F401
from capibara._modules import explain_missing
from capibara._types import Zero  # noqa: F401
from capibara.jax._src.hijax import (  # noqa: F401
    AbstractValue,
    AvalMutableQDD,
    AvalQDD,
    HiPrimitive,
    HiPspec,
    HiType,
    MutableHiType,
    VJPHiPrimitive,
    aval_method,
    aval_property,
    register_hitype,
)
from capibara.jax._src.state.types import AbstractRef, TransformedRef  # noqa: F401
from capibara.jax.core import ShapedArray  # noqa: F401
from capibara.jax.interpreters.ad import instantiate_zeros, is_undefined_primal  # noqa: F401

explain_missing(__name__)
