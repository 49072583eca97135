"""A character model: LSTM cells by scan, cross entropy, clipped gradients, and a sampled continuation."""

import math

import jax
import jax.numpy as jnp
from jax import lax, random

text = "a capybara sat in a pond"
alphabet = sorted(set(text))
codes = jnp.array([alphabet.index(letter) for letter in text])
HIDDEN = 6


def initialise(key):
    k1, k2, k3 = random.split(key, 3)
    inputs = len(alphabet)
    return {
        "embed": random.uniform(k1, (inputs, HIDDEN), minval=-0.5, maxval=0.5),
        "cell": random.normal(k2, (2 * HIDDEN, 4 * HIDDEN)) / math.sqrt(2 * HIDDEN),
        "bias": jnp.zeros(4 * HIDDEN).at[HIDDEN:2 * HIDDEN].set(1.0),  # forget gates begin open
        "out": random.normal(k3, (HIDDEN, inputs)) / math.sqrt(HIDDEN),
    }


def cell(parameters, carry, letter):
    hidden, memory = carry
    gates = jnp.concatenate([parameters["embed"][letter], hidden]) @ parameters["cell"] + parameters["bias"]
    enter, forget, leave, value = jnp.split(gates, 4)
    memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(value)
    hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
    return (hidden, memory), hidden @ parameters["out"]


def fresh():
    return jnp.zeros(HIDDEN), jnp.zeros(HIDDEN)


def loss(parameters, codes):
    _, logits = lax.scan(lambda carry, letter: cell(parameters, carry, letter), fresh(), codes[:-1])
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), codes[1:, None], axis=1))


def clip(gradient, limit):
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree_util.tree_leaves(gradient)))
    return jax.tree_util.tree_map(lambda g: g * jnp.minimum(1.0, limit / norm), gradient), norm


@jax.jit
def train(parameters):
    value, gradient = jax.value_and_grad(loss)(parameters, codes)
    gradient, norm = clip(gradient, 1.0)
    return jax.tree_util.tree_map(lambda p, g: p - 0.5 * g, parameters, gradient), value, norm


parameters = initialise(random.PRNGKey(0))
for iteration in range(6):
    parameters, value, norm = train(parameters)
    print(f"iteration {iteration} loss {value:.4f} norm {norm:.4f}")


@jax.jit
def write(parameters, key):
    def body(carry, key):
        state, letter = carry
        state, logits = cell(parameters, state, letter)
        letter = random.categorical(key, logits / 0.5)
        return (state, letter), letter

    return lax.scan(body, (fresh(), codes[0]), random.split(key, 12))[1]


written = write(parameters, random.PRNGKey(9))
print("written", repr("".join(alphabet[int(code)] for code in written)), written)
