"""Custom derivatives, and a small network trained with them: a step function learns by a straight-through gradient."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import random


# The plain derivative of log(1 + exp(x)) overflows; the rule avoids exp(x) in a numerator.
@jax.custom_jvp
def soft(x):
    return jnp.log(1.0 + jnp.exp(x))


@soft.defjvp
def soft_jvp(primals, tangents):
    x, = primals
    return soft(x), (1.0 - 1.0 / (1.0 + jnp.exp(x))) * tangents[0]


def plain(x):
    return jnp.log(1.0 + jnp.exp(x))


print("slope at 100: own", jax.grad(soft)(100.0), "plain", jax.grad(plain)(100.0))


# The identity, whose cotangent is clipped in the backward pass.
@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, cotangent: (jnp.clip(cotangent, min=-1.0, max=1.0),))
x = jnp.array([0.1, 2.0])
print(f"clipped {jax.grad(lambda v: jnp.sum(jnp.square(clipped(v))))(x)}")


# The derivative of a step is zero everywhere; the straight-through rule uses the sigmoid's derivative instead.
@jax.custom_jvp
def step(v):
    return (v > 0.0).astype(jnp.float32)


@step.defjvp
def step_jvp(primals, tangents):
    s = jax.nn.sigmoid(primals[0])
    return step(primals[0]), s * (1.0 - s) * tangents[0]


inputs = jnp.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
targets = jnp.array([0.0, 1.0, 1.0, 0.0])


def predict(net, inputs):
    return jnp.matmul(step(jnp.matmul(inputs, net["inner"]) + net["bias"]), net["outer"])


def loss(net):
    return jnp.mean(jnp.square(predict(net, inputs) - targets))


@jax.jit
def update(net):
    value, gradient = jax.value_and_grad(loss)(net)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, net, gradient)


keys = random.split(random.key(1), 2)
net = {"inner": random.normal(keys[0], (2, 16)), "bias": jnp.full(16, -0.5), "outer": 0.25 * random.normal(keys[1], (16,))}
for iteration in range(61):
    value, net = update(net)
    if iteration % 15 == 0:
        print("iteration", iteration, "loss", jnp.round(value, 4))
print(f"exclusive or {jnp.round(predict(net, inputs), 2)}")
