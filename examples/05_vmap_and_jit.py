"""Maps and compilation: a function of one example made one of many, and functions traced once per shape."""

import capibara.jax as jax
import capibara.jax.numpy as jnp


def distance(a, b):
    return jnp.sqrt(jnp.sum(jnp.square(a - b)))


def loss(w, x, y):
    return jnp.square(jnp.sum(w * x) - y)


points = jnp.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])

# Two vmaps turn a distance of two points into a table of all distances.
to_all = jax.vmap(distance, in_axes=(None, 0))
table = jax.vmap(lambda a, everything: to_all(a, everything), in_axes=(0, None))
print(f"distances\n{table(points, points)}")

# The gradient of each example, not of their sum.
w, y = jnp.array([1.0, -1.0]), jnp.array([0.0, 1.0, 2.0])
each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))
print(f"gradients of each example\n{each(w, points, y)}")


# The body of a jitted function runs while it is traced: once for each shape and type.
@jax.jit
def scaled(x):
    print(f"tracing {x.dtype}[{','.join(map(str, x.shape))}]")
    return 2 * x + 1


for argument in (y, y + 1, w):
    result = scaled(argument)
    print("scaled", result)

# What was traced can be read.
print(jax.make_jaxpr(lambda w, x: jax.lax.tanh(w * x) + 1.0)(w, w))

# Transforms compose in any order.
second = jax.jit(jax.vmap(jax.grad(jax.grad(lambda x: jnp.sin(x) * x))))
print(f"second derivatives {second(y)}")
