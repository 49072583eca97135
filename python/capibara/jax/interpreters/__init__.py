"""jax.interpreters: registration of primitives' rules, for libraries."""
from capibara._modules import explain_missing
from capibara.jax.interpreters import ad, batching, mlir, partial_eval, pxla, xla  # noqa: F401

explain_missing(__name__)
