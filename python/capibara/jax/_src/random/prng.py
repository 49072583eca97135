"""jax._src.random.prng: keys of a given generator."""
from typing import Any

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import random, vmap
from capibara.jax._generators import PRNGImpl, register_prng, seeded  # noqa: F401
from capibara.jax.extend.core.primitives import (  # noqa: F401
    random_bits_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)


def random_seed(seeds: Any, impl: Any) -> Any:
    """A key for each seed."""
    if isinstance(impl, PRNGImpl):
        return seeded(impl, seeds)
    seeds, make = _core.as_array(seeds), lambda seed: random.key(seed, impl=impl.name)
    for _ in range(seeds.ndim):
        make = vmap(make)
    return make(seeds)


def seed_with_impl(impl: Any, seed: Any) -> Any:
    return random_seed(seed, impl)


def random_split(keys: Any, shape: Any) -> Any:
    """An array of new keys for each key."""
    split = lambda key: random.split(key, tuple(shape))  # noqa: E731
    for _ in range(keys.ndim):
        split = vmap(split)
    return split(keys)


def random_wrap(base_arr: Any, *, impl: Any) -> Any:
    return random.wrap_key_data(base_arr, impl=impl if isinstance(impl, PRNGImpl) else impl.name)


def random_unwrap(keys: Any) -> Any:
    return random.key_data(keys)


explain_missing(__name__)
