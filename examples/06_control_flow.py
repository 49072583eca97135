"""Loops and branches inside a traced program: scan, while_loop, fori_loop, cond, associative_scan."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax


def swing(angle, damping):
    """A damped pendulum; returns all angles."""
    def step(state, _):
        angle, speed = state
        speed = speed - 0.1 * (jnp.sin(angle) + damping * speed)
        moved = angle + 0.1 * speed
        return (moved, speed), moved

    return lax.scan(step, (angle, 0.0 * angle), None, length=6)[1]


print("pendulum", swing(1.0, 0.5))
print("how damping moves its end", jax.grad(lambda damping: swing(1.0, damping)[-1])(0.5))


# The trip count is known only at run time.
@jax.jit
def halvings(x):
    return lax.while_loop(lambda state: state[0] > 1.0, lambda state: (state[0] / 2.0, state[1] + 1), (x, 0))[1]


print("halvings of 1000:", halvings(1000.0))

root = lax.fori_loop(0, 5, lambda _, x: 0.5 * (x + 2.0 / x), 1.0)
print("square root of 2:", root)


# Only the chosen branch runs; under vmap both do, and the values are selected.
def safe(x):
    return lax.cond(x > 0.0, lambda v: jnp.log(v), lambda v: 0.0 * v, x)


print("branches", safe(-3.0), jax.vmap(safe)(jnp.array([-1.0, 1.0, 4.0])))

# x[t] = a[t] x[t-1] + b[t] for all t in a logarithmic number of steps.
pairs = (jnp.full(5, 0.5), jnp.arange(5).astype(jnp.float32))


def compose(first, second):
    return second[0] * first[0], second[0] * first[1] + second[1]


print("recurrence", lax.associative_scan(compose, pairs)[1])
