"""Block functions of Random123: threefry and philox, which turn words of a key and of a counter into random words."""
import inspect
from typing import Any

import numpy as np

from capibara.jax import _api, lax, numpy as jnp

_PARITY = np.uint32(0x1BD11BDA)
_ROTATIONS_2 = ((13, 15, 26, 6), (17, 29, 16, 24))
_ROTATIONS_4 = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _rotated(words, distance):
    return (words << np.uint32(distance)) | (words >> np.uint32(32 - distance))


def threefry2x32_block(k0, k1, x0, x1):
    """Threefry-2x32 with 20 rounds: two words from a key of two words and a counter of two."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for distance in _ROTATIONS_2[group % 2]:
            x0 = x0 + x1
            x1 = _rotated(x1, distance) ^ x0
        x0, x1 = x0 + keys[(group + 1) % 3], x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def threefry4x32_block(k0, k1, k2, k3, x0, x1, x2, x3):
    """Threefry-4x32 with 20 rounds."""
    keys = (k0, k1, k2, k3, k0 ^ k1 ^ k2 ^ k3 ^ _PARITY)
    x = [x0 + k0, x1 + k1, x2 + k2, x3 + k3]
    for number in range(20):
        pairs = ((0, 1), (2, 3)) if number % 2 == 0 else ((0, 3), (2, 1))
        for (a, b), distance in zip(pairs, _ROTATIONS_4[number % 8]):
            x[a] = x[a] + x[b]
            x[b] = _rotated(x[b], distance) ^ x[a]
        if number % 4 == 3:
            group = number // 4 + 1
            x = [word + keys[(group + i) % 5] for i, word in enumerate(x)]
            x[3] = x[3] + np.uint32(group)
    return tuple(x)


def philox2x32_block(key, x0, x1):
    """Philox-2x32 with 10 rounds: two words from a key of one word and a counter of two."""
    for number in range(10):
        key = key + np.uint32(0x9E3779B9) if number else key
        multiplier = jnp.full_like(x0, np.uint32(0xD256D193))
        x0, x1 = lax.mulhi(multiplier, x0) ^ key ^ x1, multiplier * x0
    return x0, x1


def philox4x32_block(k0, k1, *counter):
    """Philox-4x32 with 10 rounds: four words from a key of two words and a counter of four."""
    x0, x1, x2, x3 = counter
    for number in range(10):
        if number:
            k0, k1 = k0 + np.uint32(0x9E3779B9), k1 + np.uint32(0xBB67AE85)
        first, second = jnp.full_like(x0, np.uint32(0xD2511F53)), jnp.full_like(x2, np.uint32(0xCD9E8D57))
        x0, x1, x2, x3 = lax.mulhi(second, x2) ^ x1 ^ k0, second * x2, lax.mulhi(first, x0) ^ x3 ^ k1, first * x0
    return x0, x1, x2, x3


class _Block:
    """A block function as a primitive of jax: `bind` on words, which broadcast; `name` is that of jax's primitive."""

    multiple_results = True

    def __init__(self, name, function):
        self.name, self._count = name, len(inspect.signature(function).parameters)
        self._function = _api.jit(function)

    def bind(self, *words):
        words = [jnp.asarray(word) for word in words]
        if any(word.dtype != np.uint32 for word in words):
            raise TypeError(f"Arguments to {self.name} must have uint32 type, got {[str(word.dtype) for word in words]}")
        return list(self._function(*jnp.broadcast_arrays(*words)))

    def __repr__(self):
        return self.name


threefry2x32_p = _Block("threefry2x32", threefry2x32_block)
threefry4x32_p = _Block("threefry4x32", threefry4x32_block)
philox2x32_p = _Block("philox2x32", philox2x32_block)
philox4x32_p = _Block("philox4x32", philox4x32_block)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The words of an array replaced by Threefry-2x32 blocks: its first half holds the first words of counters, the rest the second."""
    key = [jnp.asarray(word) for word in keypair]
    count = jnp.asarray(count)
    if any(word.dtype != np.uint32 for word in (*key, count)):
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {[str(word.dtype) for word in (*key, count)]}")
    flat = count.ravel()
    odd = flat.size % 2
    flat = jnp.concatenate([flat, jnp.zeros(odd, np.uint32)]) if odd else flat
    first, second = jnp.split(flat, 2)
    out = jnp.concatenate(threefry2x32_p.bind(*key, first, second))
    return out[:flat.size - odd].reshape(count.shape)
