"""jax.extend.random: generators of random bits, those of the library and those of users."""
from capibara._modules import explain_missing
from capibara.jax._generators import define_prng_impl  # noqa: F401
from capibara.jax._random_blocks import threefry2x32_p, threefry_2x32  # noqa: F401
from capibara.jax._src.random.prng import random_seed, seed_with_impl  # noqa: F401
from capibara.jax._src.random.rbg import rbg_prng_impl, unsafe_rbg_prng_impl  # noqa: F401
from capibara.jax._src.random.threefry2x32 import threefry_prng_impl  # noqa: F401

explain_missing(__name__)
