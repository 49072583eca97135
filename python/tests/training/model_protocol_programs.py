"""Modules of flax and equinox, trained by capibara's Trainer (python -m capibara THIS) or by a jax and optax loop (python THIS)."""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

STEPS, RATE = 6, 0.01


def filled(tree):
    """The same numbers in both libraries, independent of their generators."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    waves = [0.3 * np.sin(0.7 * np.arange(np.prod(leaf.shape)) + i).reshape(leaf.shape) for i, leaf in enumerate(leaves)]
    made = [jnp.asarray(wave, jnp.float32) for wave in waves]
    return jax.tree_util.tree_unflatten(structure, made)


def batch_of(number):
    x = np.cos(np.arange(32, dtype=np.float32).reshape(8, 4) + number)
    return x, np.sum(x * x, 1, keepdims=True)


def linen():
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(nn.relu(nn.Dense(16)(x)))

    module = Net()
    params = filled(jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, 4)))["params"])
    return module, params, lambda p, x, y: jnp.mean((module.apply({"params": p}, x) - y) ** 2), None


def nnx():
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.second = nnx.Linear(4, 16, rngs=rngs), nnx.Linear(16, 1, rngs=rngs)

        def __call__(self, x):
            return self.second(nnx.relu(self.first(x)))

    module = Net(nnx.Rngs(0))
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    params = filled(params)
    loss_of = lambda m, x, y: jnp.mean((m(x) - y) ** 2)  # noqa: E731
    return module, params, lambda p, x, y: loss_of(nnx.merge(graph, p, rest), x, y), loss_of


def equinox():
    import equinox as eqx
    module = eqx.nn.MLP(4, 1, 16, 1, key=jax.random.key(0))
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    params = filled(params)
    loss_of = lambda m, x, y: jnp.mean((jax.vmap(m)(x) - y) ** 2)  # noqa: E731
    return module, params, lambda p, x, y: loss_of(eqx.combine(p, rest), x, y), loss_of


def by_the_trainer(module, params, plain, loss_of):
    import capibara
    from capibara import training
    model = capibara.as_model(module, params, loss=loss_of or plain)
    config = training.TrainerConfig(steps=STEPS, optimizer="adamw", learning_rate=RATE, warmup=2)
    return training.Trainer(config, model).train(batch_of)


def by_a_loop(module, params, plain, loss_of):
    import optax
    schedule = optax.warmup_cosine_decay_schedule(0.0, RATE, 2, STEPS, end_value=RATE / 10)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.99, weight_decay=0.1))
    state, losses = optimizer.init(params), []

    @jax.jit
    def step(params, state, x, y):
        loss, gradient = jax.value_and_grad(plain)(params, x, y)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss
    for number in range(STEPS):
        params, state, loss = step(params, state, *batch_of(number))
        losses.append(float(loss))
    return losses


if __name__ == "__main__":
    train = by_the_trainer if jax.__name__ == "capibara.jax" else by_a_loop
    print(json.dumps({make.__name__: train(*make()) for make in (linen, nnx, equinox)}), file=sys.stdout)
