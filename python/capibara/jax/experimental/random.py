"""jax.experimental.random: a stateful random number generator in the style of NumPy."""
import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.ref import Ref, new_ref
from capibara.jax.typing import ArrayLike, DTypeLike

Size = int | Sequence[int] | None


def _shape(size: Size, *parameters: ArrayLike) -> tuple[int, ...]:
    """The shape of a draw: the given one, or the broadcast shape of its parameters."""
    if size is None:
        return np.broadcast_shapes(*map(np.shape, parameters))
    return tuple(map(operator.index, size if isinstance(size, Sequence) else [size]))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator: a key, and the number of draws from it in a mutable array. Created by `stateful_rng`."""

    _base_key: Array
    _counter: Ref

    def __post_init__(self) -> None:
        key, counter = self._base_key, self._counter
        if type(key) is object or not hasattr(key, "dtype") and not isinstance(key, (int, float)):
            return  # a tree with other leaves
        if not jnp.issubdtype(getattr(key, "dtype", np.float32), jax.dtypes.prng_key):
            raise ValueError(f"Expected base_key to be a typed PRNG key; got {key}")
        if not isinstance(counter, Ref):
            raise ValueError(f"Expected counter to be a scalar integer ref; got {counter}")

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key, or an array of them; advances the generator."""
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator")
        key = jax.random.fold_in(self._base_key, self._counter[...])
        self._counter.addupdate(1, ())
        sizes = _shape(shape)
        return jax.random.split(key, sizes) if sizes else key

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Numbers from 0 to 1."""
        return jax.random.uniform(self.key(), _shape(size), dtype=dtype)

    def uniform(self, low: ArrayLike = 0, high: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float) -> Array:
        """Numbers from low to high."""
        return jax.random.uniform(self.key(), _shape(size, low, high), minval=low, maxval=high, dtype=dtype)

    def normal(self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float) -> Array:
        """Numbers of a normal distribution."""
        draws = jax.random.normal(self.key(), _shape(size, loc, scale), dtype=dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * draws).astype(dtype)

    def integers(self, low: ArrayLike, high: ArrayLike | None = None, size: Size = None, *, dtype: DTypeLike = int) -> Array:
        """Integers in [low, high); with one bound, in [0, low)."""
        low, high = (0, low) if high is None else (low, high)
        return jax.random.randint(self.key(), _shape(size, low, high), minval=low, maxval=high, dtype=dtype)

    def split(self, num: int | Sequence[int]) -> "StatefulPRNG":
        """Independent generators in one object, for vmap."""
        return StatefulPRNG(self.key(num), new_ref(jnp.zeros(num, dtype=int)))

    def spawn(self, n_children: int) -> list["StatefulPRNG"]:
        """A list of independent generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator with a seed; the default, available only outside traced functions, is random."""
    if seed is None:
        if not jax.core.trace_state_clean():
            raise TypeError("When used within transformed code, jax.experimental.random.stateful_rng() requires an explicit seed to be "
                            "set.")
        entropy = np.random.SeedSequence().entropy
        seed = np.int64(int(entropy) & np.iinfo(np.int64).max)  # type: ignore[arg-type]
    return StatefulPRNG(jax.random.key(seed, impl=impl), new_ref(0))


explain_missing(__name__)
