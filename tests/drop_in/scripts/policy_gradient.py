"""A policy gradient: walkers in a corridor learn to reach its right end; episodes by scan, walkers by vmap."""

import jax
import jax.numpy as jnp
from jax import lax, random

LENGTH = 5  # cells of the corridor
STEPS = 6


def policy(weights, cell):
    return weights @ jax.nn.one_hot(cell, LENGTH)


def episode(weights, key):
    def act(cell, key):
        logits = policy(weights, cell)
        action = random.categorical(key, logits)
        following = jnp.clip(cell + 2 * action - 1, 0, LENGTH - 1)
        reward = jnp.where(following == LENGTH - 1, 1.0, -0.05)
        return following, (cell, action, reward)

    return lax.scan(act, 1, random.split(key, STEPS))[1]


def returns(rewards, discount=0.9):
    return lax.scan(lambda total, r: (r + discount * total,) * 2, 0.0, rewards, reverse=True)[1]


def surrogate(weights, cells, actions, gains):
    logits = jax.vmap(policy, (None, 0))(weights, cells.ravel())
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), actions.ravel()[:, None], axis=1)[:, 0]
    entropy = -jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=-1)
    return -jnp.mean(chosen * lax.stop_gradient(gains.ravel())) - 0.01 * entropy.mean()


@jax.jit
def improve(weights, key):
    cells, actions, rewards = jax.vmap(episode, (None, 0))(weights, random.split(key, 8))
    gains = jax.vmap(returns)(rewards)
    gains = gains - gains.mean()
    slope = jax.grad(surrogate)(weights, cells, actions, gains)
    return weights - 2.0 * slope, rewards.sum(axis=1).mean()


weights = jnp.zeros((2, LENGTH))
key = random.PRNGKey(1)
for iteration in range(5):
    key, round_key = random.split(key)
    weights, reward = improve(weights, round_key)
    print("iteration", iteration, "reward", round(float(reward), 4))
print("to the right", jax.nn.softmax(weights, axis=0)[1])
print("best actions", jnp.argmax(weights, axis=0))
