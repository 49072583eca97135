"""The tour of docs/tour.md in Python: arrays, derivatives, maps, programs, control flow, random numbers."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax

# arrays
x = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(f"x =\n{x}")
assert (x * 2 + 1).dtype == jnp.float32
assert x[0].tolist() == [1, 2, 3]
assert x[..., 1:3].shape == (2, 2)
assert x[jnp.array([1, 0])][0, 0] == 4
assert x.at[0, 1].set(9.0)[0, 1] == 9
assert x.at[7, 1].set(9.0).tolist() == x.tolist()


# derivatives, maps and programs
def fn(w, x):
    return lax.reduce_sum(lax.tanh(lax.dot(x, w)), axes=(0, 1))


w, x = lax.full((3, 2), 0.1), lax.full((4, 3), 0.5)
g = jax.grad(fn)(w, x)
gw, gx = jax.grad(fn, argnums=(0, 1))(w, x)
y, dy = jax.jvp(fn, (w, x), (jnp.ones((3, 2)), jnp.zeros((4, 3))))
assert abs(float(g.sum()) - float(dy)) < 1e-4
assert gx.shape == x.shape and gw.shape == w.shape
assert jax.vmap(lambda row: lax.dot(row, w))(x).shape == (4, 2)
print(f"the gradient as a program:\n{jax.make_jaxpr(jax.grad(fn))(w, x)}")
print(f"the function as StableHLO:\n{jax.jit(fn).lower(w, x).as_text()}")

# control flow
last, everything = lax.scan(lambda carry, x: (carry + x, carry * x), 0.0, jnp.array([1.0, 2.0, 3.0]))
assert last == 6 and everything.tolist() == [0, 2, 9]
y = lax.while_loop(lambda v: v < 100.0, lambda v: v * 2.0, 3.0)
assert y == 192
assert lax.cond(y > 100.0, lambda v: v, lambda v: -v, y) == 192

# random numbers
noise = jax.random.normal(jax.random.key(0), (3,))
print(f"three draws of jax.random.normal(jax.random.key(0)): {noise}")


# a custom derivative
@jax.custom_jvp
def safe_sqrt(x):
    return lax.sqrt(x)


@safe_sqrt.defjvp
def safe_sqrt_jvp(primals, tangents):
    x, = primals
    root = lax.sqrt(x)
    slope = lax.select(x > 0.0, 0.5 / lax.max(root, lax.full_like(root, 1e-6)), jnp.zeros_like(x))
    return root, slope * tangents[0]


assert jax.grad(safe_sqrt)(0.0) == 0
assert jax.grad(safe_sqrt)(4.0) == 0.25
print("every claim of the tour holds")
