"""haiku: a convolutional network with batch norm, an LSTM unrolled over time, and the gradient of both."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np


def classify(x, is_training):
    x = hk.Conv2D(4, 3)(x)
    x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, is_training))
    return hk.Linear(3)(hk.Flatten()(hk.avg_pool(x, 2, 2, "SAME")))


def unroll(steps):
    core = hk.LSTM(8)
    return hk.dynamic_unroll(core, steps, core.initial_state(2))[0]


network, x = hk.transform_with_state(classify), jax.random.normal(jax.random.key(0), (2, 8, 8, 3))
params, state = network.init(jax.random.PRNGKey(0), x, True)
out, state = network.apply(params, state, None, x, True)
print(np.asarray(out), jax.tree.map(lambda leaf: np.asarray(leaf).sum(), state))
gradient = jax.jit(jax.grad(lambda params: jnp.sum(network.apply(params, state, None, x, True)[0] ** 2)))(params)
print(jax.tree.map(lambda leaf: np.abs(np.asarray(leaf)).sum(), gradient["conv2_d"]["w"]))
recurrent, steps = hk.without_apply_rng(hk.transform(unroll)), jax.random.normal(jax.random.key(1), (5, 2, 3))
params = recurrent.init(jax.random.PRNGKey(1), steps)
print(np.asarray(recurrent.apply(params, steps)).sum((0, 1)), jax.tree.map(jnp.shape, params))
