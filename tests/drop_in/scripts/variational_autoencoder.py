"""A variational autoencoder of points on a ring, with Adam written out."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import random

LATENT = 2


def dense(key, inputs, outputs):
    return {"w": random.normal(key, (inputs, outputs)) / jnp.sqrt(inputs), "b": jnp.zeros((outputs,))}


def apply_dense(layer, x):
    return jnp.dot(x, layer["w"]) + layer["b"]


def initialise(key, inputs=3, hidden=8):
    keys = random.split(key, 4)
    return {
        "encoder": (dense(keys[0], inputs, hidden), dense(keys[1], hidden, 2 * LATENT)),
        "decoder": (dense(keys[2], LATENT, hidden), dense(keys[3], hidden, inputs)),
    }


def encode(layers, x):
    out = apply_dense(layers[1], jnp.tanh(apply_dense(layers[0], x)))
    return jnp.split(out, 2, axis=-1)


def decode(layers, z):
    return apply_dense(layers[1], jax.nn.softplus(apply_dense(layers[0], z)))


def negative_bound(parameters, key, x):
    """Reconstruction plus divergence for one point."""
    mean, log_scale = encode(parameters["encoder"], x)
    z = mean + jnp.exp(log_scale) * random.normal(key, mean.shape)
    rebuilt = decode(parameters["decoder"], z)
    divergence = 0.5 * jnp.sum(jnp.exp(2 * log_scale) + mean**2 - 1.0 - 2 * log_scale)
    return jnp.sum((rebuilt - x) ** 2) + 0.1 * divergence


def objective(parameters, key, batch):
    keys = random.split(key, batch.shape[0])
    return jnp.mean(jax.vmap(negative_bound, in_axes=(None, 0, 0))(parameters, keys, batch))


@partial(jax.jit, static_argnames=("rate",))
def update(state, key, batch, rate=0.02):
    parameters, first, second, count = state
    value, gradient = jax.value_and_grad(objective)(parameters, key, batch)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * jnp.square(g), second, gradient)

    def move(p, m, v):
        return p - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return value, (jax.tree.map(move, parameters, first, second), first, second, count)


key = random.key(42)
angles = jnp.linspace(0.0, 2 * jnp.pi, 8, endpoint=False)
batch = jnp.stack([jnp.cos(angles), jnp.sin(angles), jnp.cos(2 * angles)], axis=-1)
key, start = random.split(key)
parameters = initialise(start)
zeros = jax.tree.map(jnp.zeros_like, parameters)
state = (parameters, zeros, zeros, 0)
for iteration in range(8):
    key, noise = random.split(key)
    value, state = update(state, noise, batch)
    print("bound", iteration, float(value))
mean, log_scale = encode(state[0]["encoder"], batch)
print("latent spread", [round(float(v), 4) for v in jnp.std(mean, axis=0)])
print("latent scale", jnp.exp(log_scale).mean(axis=0))
