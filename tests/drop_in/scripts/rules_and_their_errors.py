"""Custom rules: optimize_remat, stacked decorators, what may be passed, and what is said of rules that do not fit."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def told(words, function, *args):
    try:
        function(*args)
    except Exception as error:
        print(type(error).__name__, all(word in str(error) for word in words))
    else:
        print("nothing was raised")


@jax.custom_vjp
def tangent(x):
    return jnp.tan(x)


tangent.defvjp(lambda x: (jnp.sin(x), (x,)), lambda kept, g: (jnp.cos(kept[0]) * g,), optimize_remat=True)
for wrap in (lambda f: f, jax.jit):
    print(*map(float, wrap(jax.value_and_grad(lambda x: jax.remat(tangent)(x) ** 2))(3.2)))
    print(*map(float, wrap(jax.value_and_grad(lambda x: tangent(x) ** 2))(3.2)))
print([x.tolist() for x in jax.vmap(jax.value_and_grad(jax.remat(tangent)))(jnp.arange(3.0))])
print([x.tolist() for x in jax.vmap(jax.value_and_grad(tangent))(jnp.arange(3.0))])

for decorators in ((jax.custom_jvp, jax.custom_batching.custom_vmap), (jax.custom_batching.custom_vmap, jax.custom_vjp)):
    f = lambda x: x + 1.0
    for decorator in decorators:
        f = decorator(f)
    print([callable(getattr(f, name, None)) for name in ("defjvp", "defvjp", "def_vmap")])

f = jax.custom_jvp(functools.partial(lambda x, y, a: x + y * a, a=0.1))
f.defjvp(lambda primals, tangents: jax.jvp(f.fun, primals, tangents))
print(*map(float, jax.grad(lambda pair: f(*pair))((1.0, 2.0))))


@jax.custom_jvp
def named(x, y, *, z=None):
    return x * y


named.defjvp(lambda primals, tangents: (named(*primals), tangents[0]))
print(float(named(2.0, y=3.0)))
told(["custom_jvp-decorated function named", "missing a required argument: 'y'"], lambda: named(0.5))
told(["custom_jvp-decorated function named", "could not be resolved to positions: z"], lambda: named(0.5, 0.1, z=1.0))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def scaled(k, x):
    return k * x


scaled.defvjp(lambda k, x: (k * x, x), lambda k, x, g: (k * g,))
print(float(jax.grad(scaled, 1)(2.0, 3.0)))
told(["custom_vjp"], lambda: jax.jit(scaled)(2.0, 3.0))


@jax.custom_vjp
def first(x, y):
    return x


first.defvjp(lambda x, y: (x, None), lambda _, g: (g, jnp.zeros(3)))
told(["output[1] the bwd rule produced an output of type float32[3]"], lambda: jax.grad(lambda x, y: first(x, y).sum(), 1)(jnp.ones(3), jnp.ones(4)))
first.defvjp(lambda x, y: (jnp.stack([x, x]), None), lambda _, g: (g, g))
told(["float32[2]", "float32[]"], lambda: jax.jit(jax.grad(lambda x: lax.scan(lambda c, _: (first(c, x), None), x, None, length=2)[0]))(1.0))
told(["can't apply forward-mode autodiff (jvp) to a custom_vjp function"], lambda: jax.jvp(tangent, (1.0,), (1.0,)))


@jax.custom_batching.custom_vmap
def sine(x):
    return jnp.sin(x)


sine.def_vmap(lambda size, batched, xs: ([jnp.sin(xs)], [True]))
told(["structure of output returned by custom vmap rule"], lambda: jax.vmap(sine)(jnp.arange(3.0)))
sine.def_vmap(lambda size, batched, xs: ([xs, xs], [True]))
told(["output batching specification returned by custom vmap rule"], lambda: jax.vmap(sine)(jnp.arange(3.0)))
z = jnp.array([2.0, 1.0, 3.0])
added = jax.custom_batching.custom_vmap(lambda x: z + jnp.sin(x))
added.def_vmap(lambda size, batched, xs: (z + jnp.cos(xs), True))
print(jax.vmap(added)(jnp.arange(3.0)).tolist())

one_by_one = jax.custom_batching.sequential_vmap(lambda x: x + 1.0)
xs = jnp.arange(3.0)
print(str(jax.make_jaxpr(jax.vmap(one_by_one))(xs)) == str(jax.make_jaxpr(lambda xs: lax.map(one_by_one, xs))(xs)))

x = np.arange(4 * 4 * 2).reshape(2, 2, 4, 2)
for split, join, tiled in ((0, 0, False), (0, 1, False), (0, 1, True), (0, 0, True)):
    exchange = lambda x: lax.all_to_all(x, ("i", "j"), split, join, tiled=tiled)
    print(jax.vmap(jax.vmap(exchange, axis_name="j"), axis_name="i")(x).tolist())
print(jax.vmap(lambda x: lax.ppermute(x, "i", np.array([[0, 2], [1, 0], [2, 1]])), axis_name="i")(np.arange(3)).tolist())

with jax.numpy_rank_promotion("raise"):
    from jax.experimental import checkify
    looked_up = checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)
    for rows in ([[0, 1], [1, 0]], [[0, 1], [1, 5]]):
        print(looked_up(jnp.ones((3, 2)), tuple(jnp.array(rows)))[0].get() is None)
