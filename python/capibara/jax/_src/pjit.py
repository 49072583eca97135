"""jax._src.pjit: jit under its older name, and constraints."""
from capibara._modules import explain_missing
from capibara.jax._explicit import auto_axes, explicit_axes, reshard  # noqa: F401
from capibara.jax._partition import pjit  # noqa: F401
from capibara.jax._placing import with_sharding_constraint  # noqa: F401

explain_missing(__name__)
