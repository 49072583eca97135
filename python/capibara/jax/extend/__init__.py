"""jax.extend: the API for libraries built on jax."""
from capibara._modules import explain_missing
from capibara.jax.extend import backend, core, linear_util, source_info_util  # noqa: F401

explain_missing(__name__, later={"ifrt_programs": None, "random": None})
