"""Exports a model predictive controller for a cart-pole system: 25 steps of gradient descent on the forces of the next second."""
import pathlib

import jax
import jax.numpy as jnp
from jax import export, lax

HORIZON, STEP = 50, 0.02  # of 0.02 s each


def cart_and_pole(state, force):
    """One step of the mechanics: position and speed of the cart, angle from upright and angular speed of the pole."""
    x, v, angle, spin = state
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    push = (force + 0.05 * spin**2 * sine) / 1.1
    turn = (9.81 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    v, spin = v + STEP * (push - 0.05 * turn * cosine / 1.1), spin + STEP * turn
    return jnp.stack([x + STEP * v, v, angle + STEP * spin, spin])


def cost(forces, state):
    def step(state, force):
        state = cart_and_pole(state, force)
        x, v, angle, spin = state
        return state, x**2 + 10 * angle**2 + 0.1 * v**2 + 0.1 * spin**2 + 0.001 * force**2
    last, costs = lax.scan(step, state, forces)
    return costs.sum() + 20 * jnp.sum(last**2)


def control(state, forces):
    """The force to apply now, and the plan for the following steps, which is the starting point of the next call."""
    def improve(_, carried):
        forces, momentum = carried
        gradient = jax.grad(cost)(forces, state)
        size = jnp.sqrt(jnp.sum(gradient**2)) + 1e-6
        momentum = 0.8 * momentum - gradient * jnp.minimum(0.05, 1.0 / size)
        return jnp.clip(forces + momentum, -15, 15), momentum
    forces, _ = lax.fori_loop(0, 25, improve, (forces, jnp.zeros_like(forces)))
    return {"force": forces[0], "plan": jnp.append(forces[1:], 0.0)}


if __name__ == "__main__":
    number = jax.ShapeDtypeStruct((4,), jnp.float32), jax.ShapeDtypeStruct((HORIZON,), jnp.float32)
    pathlib.Path("control.exported").write_bytes(export.export(jax.jit(control))(*number).serialize())
