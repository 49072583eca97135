"""A bouncing ball simulated with while_loop and custom_vjp: the fixed point of its friction has its own gradient."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(function, parameter, start):
    """The x with x == function(parameter, x), by iteration."""
    def unsettled(pair):
        before, after = pair
        return jnp.max(jnp.abs(before - after)) > 1e-6

    def iterate(pair):
        return pair[1], function(parameter, pair[1])

    return lax.while_loop(unsettled, iterate, (start, function(parameter, start)))[1]


def forward(function, parameter, start):
    point = fixed_point(function, parameter, start)
    return point, (parameter, point)


def backward(function, saved, cotangent):
    parameter, point = saved
    _, pull_point = jax.vjp(lambda x: function(parameter, x), point)
    adjoint = fixed_point(lambda c, u: c + pull_point(u)[0], cotangent, jnp.zeros_like(cotangent))
    _, pull_parameter = jax.vjp(lambda p: function(p, point), parameter)
    return pull_parameter(adjoint)[0], jnp.zeros_like(point)


fixed_point.defvjp(forward, backward)


def limit_speed(drag):
    """Where gravity and drag balance, for three balls of different width."""
    widths = jnp.array([0.5, 1.0, 2.0])
    return fixed_point(lambda c, v: jnp.sqrt(9.81 / (c * widths + 0.2 * jnp.tanh(v))), drag, jnp.ones(3))


@jax.custom_jvp
def bounce(height):
    return jnp.abs(height)


@bounce.defjvp
def bounce_jvp(primals, tangents):
    (height,), (tangent,) = primals, tangents
    return bounce(height), jnp.where(height < 0, -0.8, 1.0) * tangent  # a bounce loses a fifth


def simulate(drag, steps=12, dt=0.1):
    top = limit_speed(drag)

    def body(_, state):
        height, speed = state
        speed = jnp.clip(speed - 9.81 * dt, -top, top)
        moved = height + dt * speed
        speed = lax.select(moved < 0, -0.8 * speed, speed)
        return bounce(moved), speed

    return lax.fori_loop(0, steps, body, (jnp.full(3, 2.0), jnp.zeros(3)))


drag = jnp.float32(0.9)
print("limit", limit_speed(drag))
print("limit slopes", jax.jacrev(limit_speed)(drag))
exact = (limit_speed(drag + 1e-2) - limit_speed(drag - 1e-2)) / 2e-2
print("agrees", bool(jnp.allclose(exact, jax.jacrev(limit_speed)(drag), rtol=1e-2)))
height, speed = jax.jit(simulate)(drag)
print("height", height)
print("speed", speed)
print("sensitivity", jax.jacfwd(bounce)(jnp.array([-1.0, 0.0, 2.0])))
print("mean slope", float(jax.grad(lambda d: jnp.sum(limit_speed(d) ** 2))(drag)))
print("batch", jax.vmap(limit_speed)(jnp.array([0.5, 1.5])))
