"""Trains a small transformer on letters, and exports the step that appends one letter to a text, with a cache of keys and values."""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

LENGTH, WIDTH, HEADS, LAYERS, LETTERS = 64, 64, 4, 2, 128  # letters are bytes of ASCII


def init(key):
    def matrix(key, m, n):
        return jax.random.normal(key, (m, n)) / jnp.sqrt(m)

    def layer(key):
        k = jax.random.split(key, 4)
        return {"qkv": matrix(k[0], WIDTH, 3 * WIDTH), "out": matrix(k[1], WIDTH, WIDTH), "up": matrix(k[2], WIDTH, 4 * WIDTH),
                "down": matrix(k[3], 4 * WIDTH, WIDTH)}
    keys = jax.random.split(key, LAYERS + 2)
    return {"letters": matrix(keys[0], LETTERS, WIDTH) * 4, "places": matrix(keys[1], LENGTH, WIDTH) * 2,
            "layers": [layer(k) for k in keys[2:]]}


def norm(x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attend(q, keys, values, seen):
    """q: [queries, heads, size]; keys, values: [length, heads, size]; seen: [queries, length]."""
    scores = jnp.einsum("qhd,khd->hqk", q, keys) / np.sqrt(q.shape[-1])
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(jnp.where(seen, scores, -1e9)), values)


def heads(x):
    return x.reshape(x.shape[0], 3, HEADS, WIDTH // HEADS).swapaxes(0, 1)


def logits(params, text):
    x = params["letters"][text] + params["places"]
    seen = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    for layer in params["layers"]:
        q, k, v = heads(norm(x) @ layer["qkv"])
        x = x + attend(q, k, v, seen).reshape(LENGTH, WIDTH) @ layer["out"]
        x = x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
    return norm(x) @ params["letters"].T


def decode(params, cache, letter, place):
    """The most likely next letter, and the cache with the keys and values of this position written."""
    x = (params["letters"][letter] + params["places"][place])[None]
    seen, written = (jnp.arange(LENGTH) <= place)[None], []
    for layer, kept in zip(params["layers"], cache):
        q, *new = heads(norm(x) @ layer["qkv"])
        kept = [lax.dynamic_update_slice(old, one, (place, 0, 0)) for old, one in zip(kept, new)]
        written.append(kept)
        x = x + attend(q, *kept, seen).reshape(1, WIDTH) @ layer["out"]
        x = x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
    return jnp.argmax(norm(x) @ params["letters"].T).astype(jnp.int32), written


def train(text, steps):
    params = init(jax.random.key(0))
    zeros = jax.tree.map(jnp.zeros_like, params)

    def loss(params, windows):
        scores = jax.vmap(lambda w: logits(params, w))(windows[:, :-1])
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), windows[:, 1:, None], -1).mean()

    @jax.jit
    def step(state, windows, rate):
        params, mean, square = state
        value, gradient = jax.value_and_grad(loss)(params, windows)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
        return (jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square), mean, square), value

    state, random = (params, zeros, zeros), np.random.default_rng(0)
    for i in range(steps):
        starts = random.integers(0, len(text) - LENGTH - 1, 16)
        state, value = step(state, np.stack([text[s:s + LENGTH + 1] for s in starts]), 0.003 * (1 - i / steps))
    print(f"loss after {steps} steps: {value:.2f}")
    return state[0]


if __name__ == "__main__":
    book = pathlib.Path(sys.argv[1]).read_text(errors="ignore").encode("ascii", "ignore")
    params = train(np.frombuffer(book, np.uint8).astype(np.int32), int(sys.argv[2]) if len(sys.argv) > 2 else 400)
    cache = [[jax.ShapeDtypeStruct((LENGTH, HEADS, WIDTH // HEADS), jnp.float32)] * 2] * LAYERS
    number = jax.ShapeDtypeStruct((), jnp.int32)
    step = jax.jit(lambda cache, letter, place: decode(params, cache, letter, place))
    pathlib.Path("language_model.exported").write_bytes(export.export(step)(cache, number, number).serialize())
