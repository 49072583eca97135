"""Trains one layer to reproduce a known one: jit, value_and_grad and a dict of parameters."""

import capibara.jax as jax
import capibara.jax.numpy as jnp


def loss(p, x, y):
    e = jnp.tanh(jnp.dot(x, p["w"]) + p["b"]) - y
    return jnp.sum(e * e) / x.shape[0]


@jax.jit
def update(p, x, y):
    value, gradient = jax.value_and_grad(loss)(p, x, y)
    return value, jax.tree.map(lambda v, d: v - 0.1 * d, p, gradient)


x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 2.0]])
target = {"w": jnp.array([[0.5, -0.3], [0.2, 0.7]]), "b": jnp.array([0.1, -0.2])}
y = jnp.tanh(jnp.dot(x, target["w"]) + target["b"])

params = jax.tree.map(jnp.zeros_like, target)
for step in range(101):
    value, params = update(params, x, y)
    if step % 20 == 0:
        print(f"step {step:3d}  loss {value:.6f}")
