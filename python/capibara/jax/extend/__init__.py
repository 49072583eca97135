"""jax.extend: what libraries build on."""
from capibara._modules import explain_missing
from capibara.jax.extend import backend, core, linear_util, source_info_util  # noqa: F401

explain_missing(__name__, later={"ifrt_programs": None})
