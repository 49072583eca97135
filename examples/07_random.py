"""Random numbers: keys instead of hidden state, the same draws as jax, and a Monte Carlo estimate."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import random


def inside(key):
    """Counts random points of the unit square that fall inside the quarter disc."""
    points = random.uniform(key, (16, 2))
    return jnp.sum(jnp.sum(jnp.square(points), axis=1) < 1.0)


key = random.key(42)
print(f"a key draws the same again {random.normal(key, (2,))} {random.normal(key, (2,))}")

# Use each key once; fold_in derives a new key from a key and a number.
keys = random.split(key, 3)
print(f"first {random.uniform(keys[0], (3,))}")
print(f"dice {random.randint(keys[1], (8,), 1, 7)}")
print(f"shuffled {random.permutation(keys[2], jnp.arange(6))}")
print(f"folded {random.bits(random.fold_in(key, 7))}")

logits = jnp.array([0.0, 1.0, 2.0])
print(f"classes {random.categorical(keys[0], logits, shape=(10,))}")
print(f"coins {random.bernoulli(keys[1], 0.25, (6,))}")
print(f"exponential {random.exponential(keys[2], (2,))}")

# Draws are pure functions of their keys, so they can be vmapped and jitted.
counts = jax.jit(jax.vmap(inside))(random.split(key, 20))
print(f"in the disc {counts}")
print("pi is about", 4.0 * jnp.mean(counts) / 16.0)
