"""vmap and jit: a function of one example is applied to a batch, and functions are traced once per shape and type."""

import capibara.jax as jax
import capibara.jax.numpy as jnp


def distance(a, b):
    return jnp.sqrt(jnp.sum(jnp.square(a - b)))


def loss(w, x, y):
    return jnp.square(jnp.sum(w * x) - y)


points = jnp.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])

# Two vmaps make a table of all pairwise distances out of the distance between two points.
to_all = jax.vmap(distance, in_axes=(None, 0))
table = jax.vmap(lambda a, everything: to_all(a, everything), in_axes=(0, None))
print(f"distances\n{table(points, points)}")

# Per-example gradients rather than the gradient of the sum.
w, y = jnp.array([1.0, -1.0]), jnp.array([0.0, 1.0, 2.0])
each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))
print(f"gradients of each example\n{each(w, points, y)}")


# The body of a jitted function runs only while it is traced: once for each shape and type.
@jax.jit
def scaled(x):
    print(f"tracing {x.dtype}[{','.join(map(str, x.shape))}]")
    return 2 * x + 1


for argument in (y, y + 1, w):
    result = scaled(argument)
    print("scaled", result)

# The traced program can be printed.
print(jax.make_jaxpr(lambda w, x: jax.lax.tanh(w * x) + 1.0)(w, w))

# Transforms compose in any order.
second = jax.jit(jax.vmap(jax.grad(jax.grad(lambda x: jnp.sin(x) * x))))
print(f"second derivatives {second(y)}")
