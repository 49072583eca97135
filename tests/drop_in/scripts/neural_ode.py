"""A neural differential equation: Runge-Kutta steps in a fori_loop, trained to follow a spiral."""

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.flatten_util import ravel_pytree


def field(parameters, y):
    hidden = jnp.tanh(y @ parameters["w1"] + parameters["b1"])
    return hidden @ parameters["w2"]


def runge_kutta(parameters, y, dt):
    k1 = field(parameters, y)
    k2 = field(parameters, y + 0.5 * dt * k1)
    k3 = field(parameters, y + 0.5 * dt * k2)
    k4 = field(parameters, y + dt * k3)
    return y + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve(parameters, start, steps, dt=0.1):
    path = jnp.zeros((steps + 1,) + start.shape).at[0].set(start)

    def body(index, carry):
        y, path = carry
        y = runge_kutta(parameters, y, dt)
        return y, path.at[index + 1].set(y)

    return lax.fori_loop(0, steps, body, (start, path))[1]


def spiral(steps, dt=0.1):
    times = dt * jnp.arange(steps + 1)
    return jnp.exp(-0.3 * times)[:, None] * jnp.stack([jnp.cos(2 * times), jnp.sin(2 * times)], axis=1)


keys = random.split(random.PRNGKey(3), 2)
parameters = {
    "w1": random.normal(keys[0], (2, 6)) * 0.7,
    "b1": jnp.zeros(6),
    "w2": random.normal(keys[1], (6, 2)) * 0.7,
}
target = spiral(6)
flat, unravel = ravel_pytree(parameters)
print("size", flat.shape[0])


def loss(flat):
    return jnp.mean((solve(unravel(flat), target[0], 6) - target) ** 2)


gradient = jax.jit(jax.value_and_grad(loss))
for iteration in range(6):
    value, slope = gradient(flat)
    flat = flat - 0.3 * slope
    print(f"iteration {iteration} loss {value:.6f} slope {jnp.linalg.norm(slope):.6f}")

# Forward mode gives the same directional derivative as reverse mode.
direction = jnp.cos(jnp.arange(flat.size, dtype=flat.dtype))
_, along = jax.jvp(loss, (flat,), (direction,))
print("directional", float(along), float(jnp.vdot(gradient(flat)[1], direction)))
print("end", solve(unravel(flat), target[0], 6)[-1])
