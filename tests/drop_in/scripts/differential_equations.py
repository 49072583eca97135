"""Differential equations integrated by odeint: values, gradients by the adjoint equation, maps over initial values."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.ode import odeint


def pendulum(y, t, m, g):
    return jnp.stack([y[1], -m * y[1] - g * jnp.sin(y[0])])


ts = jnp.linspace(0.0, 1.0, 5)
start = jnp.array([3.0, 0.0])
print(np.round(odeint(pendulum, start, ts, 0.25, 9.8, rtol=1e-6, atol=1e-6), 3))
loss = lambda y0, ts, m, g: odeint(pendulum, y0, ts, m, g, rtol=1e-6, atol=1e-6)[1:].sum()  # noqa: E731
for gradient in jax.grad(loss, argnums=(0, 1, 2, 3))(start, ts, 0.25, 9.8):
    print(np.round(gradient, 2))
print(np.round(odeint(lambda y, t: jax.tree.map(jnp.negative, y), {"a": jnp.array(1.0), "b": jnp.ones((1, 2))}, ts, rtol=1e-6, atol=1e-6)["b"][-1], 3))
decay = jax.jit(lambda x: odeint(lambda y, t, x: -x * y, 1.0, jnp.array([0.0, 2.0]), x, rtol=1e-6, atol=1e-6)[-1])
print(np.round(jax.vmap(jax.value_and_grad(decay))(jnp.array([0.5, 1.0])), 3))
