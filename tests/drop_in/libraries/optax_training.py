"""Trains a network with many optimisers of optax, and evaluates its losses and schedules."""

import jax
import jax.numpy as jnp
import optax

KEYS = jax.random.split(jax.random.key(0), 3)
PARAMETERS = {"w": jax.random.normal(KEYS[0], (3, 4)), "b": jnp.zeros(4), "list": [jnp.ones(5), jnp.arange(3.0)]}
INPUTS = jax.random.normal(KEYS[1], (6, 3))


def loss(parameters):
    hidden = jnp.tanh(INPUTS @ parameters["w"] + parameters["b"])
    return jnp.sum(hidden**2) + sum(jnp.sum((leaf - 2) ** 2) for leaf in parameters["list"])


def train(optimiser, steps=6):
    @jax.jit
    def step(parameters, state):
        gradient = jax.grad(loss)(parameters)
        updates, state = optimiser.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state

    parameters, state = PARAMETERS, optimiser.init(PARAMETERS)
    for _ in range(steps):
        parameters, state = step(parameters, state)
    return loss(parameters)


for name in ("adabelief", "adafactor", "adagrad", "adamw", "lamb", "lion", "radam", "rmsprop", "sgd", "yogi"):
    print(name, f"{train(getattr(optax, name)(learning_rate=0.05)):.6f}")
print("noisy", f"{train(optax.noisy_sgd(0.01, key=1)):.6f}")
schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 3, 12)
print("chain", f"{train(optax.chain(optax.clip_by_global_norm(1.0), optax.trace(0.9), optax.scale_by_schedule(lambda n: -schedule(n)))):.6f}")
print("accumulated", f"{train(optax.MultiSteps(optax.adam(0.05), every_k_schedule=2)):.6f}")
print("schedule", [f"{value:.5f}" for value in jax.vmap(schedule)(jnp.arange(12))])

optimiser = optax.lbfgs()
parameters, state = PARAMETERS, optimiser.init(PARAMETERS)
value_and_gradient = optax.value_and_grad_from_state(loss)
for _ in range(4):
    value, gradient = value_and_gradient(parameters, state=state)
    updates, state = optimiser.update(gradient, state, parameters, value=value, grad=gradient, value_fn=loss)
    parameters = optax.apply_updates(parameters, updates)
print("lbfgs", f"{loss(parameters):.4f}")

logits, labels = jax.random.normal(KEYS[2], (5, 4)), jnp.array([0, 3, 1, 2, 2])
print("losses", [f"{jnp.sum(value):.5f}" for value in (
    optax.softmax_cross_entropy_with_integer_labels(logits, labels), optax.sigmoid_binary_cross_entropy(logits, logits > 0),
    optax.huber_loss(logits), optax.cosine_similarity(logits, logits + 1), optax.losses.poly_loss_cross_entropy(logits, jax.nn.one_hot(labels, 4)))])
