"""jax._src.core: names of jax.core, and the errors of traced values."""
from capibara._errors import ConcretizationTypeError, TracerArrayConversionError, TracerBoolConversionError  # noqa: F401
from capibara._errors import ShardingTypeError, TracerIntegerConversionError, UnexpectedTracerError  # noqa: F401
from capibara._modules import explain_missing
from capibara.jax._axes import ManualAxisType  # noqa: F401
from capibara.jax._explicit import explicit_part as modify_spec_for_auto_manual  # noqa: F401
from capibara.jax._placing import Space as MemorySpace  # noqa: F401
from capibara.jax.core import *  # noqa: F401,F403
from capibara.jax.core import ShapedArray, Tracer, eval_jaxpr, get_aval, trace_state_clean  # noqa: F401

explain_missing(__name__)
