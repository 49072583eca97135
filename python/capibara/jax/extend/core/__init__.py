"""jax.extend.core: programs and primitives."""
from capibara._modules import explain_missing
from capibara.jax.core import (  # noqa: F401
    ClosedJaxpr,
    DropVar,
    InconclusiveDimensionOperation,
    Jaxpr,
    JaxprEqn,
    JaxprTypeError,
    Literal,
    Primitive,
    Var,
    array_types,
    check_jaxpr,
    concrete_or_error,
    find_top_trace,
    get_opaque_trace_state,
    jaxpr_as_fun,
    jaxprs_in_params,
    mapped_aval,
    no_effects,
    primal_dtype_to_tangent_dtype,
    subjaxprs,
    unmapped_aval,
    valid_jaxtype,
)
from capibara.jax.extend.core import primitives  # noqa: F401

explain_missing(__name__)
