"""Trains a network to replace a material law, the conductivity of a gas by temperature, and exports it for 200 cells at once."""
import pathlib

import jax
import jax.numpy as jnp
from jax import export

CELLS = 200


def conductivity(t):
    """The law to learn; stands in for a table or a slow computation."""
    return 0.05 + t**2.5 / (1 + t**2) + 0.1 * jnp.sin(3 * t)


def network(params, t):
    x = t[:, None]
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return jax.nn.softplus(x @ w + b)[:, 0]


def train(steps=4000):
    keys = jax.random.split(jax.random.key(0), 3)
    params = [(jax.random.normal(key, (m, n)) * jnp.sqrt(1 / m), jnp.zeros(n)) for key, m, n in zip(keys, (1, 32, 32), (32, 32, 1))]
    t = jnp.linspace(0, 3, 256)
    expected = conductivity(t)

    def step(i, state):
        params, mean, square = state
        gradient = jax.grad(lambda p: jnp.mean((network(p, t) - expected) ** 2))(params)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
        rate = 0.01 * (1 - i / steps)
        return jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square), mean, square

    zeros = jax.tree.map(jnp.zeros_like, params)
    params, _, _ = jax.jit(lambda state: jax.lax.fori_loop(0, steps, step, state))((params, zeros, zeros))
    print(f"largest error of the network: {jnp.abs(network(params, t) - expected).max():.4f}")
    return params


if __name__ == "__main__":
    params = train()
    learned = jax.jit(lambda t: network(params, t))  # the parameters become constants of the object
    file = export.export(learned)(jax.ShapeDtypeStruct((CELLS,), jnp.float32)).serialize()
    pathlib.Path("surrogate.exported").write_bytes(file)
