"""jax._src.state: the types of mutable arrays."""
from capibara._modules import explain_missing
from capibara.jax._src.state import types  # noqa: F401

explain_missing(__name__)
