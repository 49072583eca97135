"""jax._src.random.threefry2x32: the default generator on plain arrays of its words."""
from typing import Any

from capibara._modules import explain_missing
from capibara.jax import random
from capibara.jax._array import _KeyImplementation
from capibara.jax._random_blocks import threefry2x32_p, threefry_2x32  # noqa: F401

threefry_prng_impl = _KeyImplementation("threefry2x32", (2,))


def threefry_seed(seed: Any) -> Any:
    """The words of the key of an integer."""
    return random.key_data(random.key(seed, impl="threefry2x32"))


def threefry_random_bits(key: Any, bit_width: int, shape: Any) -> Any:
    """Random unsigned integers of `bit_width` bits."""
    return random.bits(random.wrap_key_data(key, impl="threefry2x32"), tuple(shape), f"uint{bit_width}")


def threefry_split(key: Any, shape: Any) -> Any:
    return random.key_data(random.split(random.wrap_key_data(key, impl="threefry2x32"), tuple(shape)))


def threefry_fold_in(key: Any, data: Any) -> Any:
    return random.key_data(random.fold_in(random.wrap_key_data(key, impl="threefry2x32"), data))


explain_missing(__name__)
