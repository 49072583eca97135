"""jax._src.core: names of jax.core."""
from capibara._modules import explain_missing
from capibara.jax.core import *  # noqa: F401,F403
from capibara.jax.core import ShapedArray, Tracer, eval_jaxpr, get_aval, trace_state_clean  # noqa: F401

explain_missing(__name__)
