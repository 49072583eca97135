"""jax._src.ad_util: what derivative rules are written with."""
from capibara._modules import explain_missing
from capibara._types import SymbolicZero, Zero  # noqa: F401
from capibara.jax.extend.core.primitives import stop_gradient_p  # noqa: F401
from capibara.jax.interpreters.ad import add_jaxvals, add_jaxvals_p, instantiate_zeros as instantiate, zeros_like_aval  # noqa: F401

add_any_p = add_jaxvals_p
explain_missing(__name__)
