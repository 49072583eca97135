"""jax._src.random.rbg: the hardware random number generators, by name."""
from capibara._modules import explain_missing
from capibara.jax._array import _KeyImplementation

rbg_prng_impl = _KeyImplementation("rbg", (4,))
unsafe_rbg_prng_impl = _KeyImplementation("unsafe_rbg", (4,))

explain_missing(__name__)
