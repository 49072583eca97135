"""Functions with run-time checks, made values by checkify."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import checkify


def positive(x):
    checkify.check(x > 0, "{x} must be positive", x=x)
    return 2 * x


def report(name, error, value):
    print(name, error.get(), jax.tree.leaves(value))


for start in (jnp.float32(1), jnp.float32(-1)):
    report("plain", *checkify.checkify(positive)(start))
    report("jit inside", *checkify.checkify(jax.jit(positive))(start))
    report("jit outside", *jax.jit(checkify.checkify(positive))(start))
    report("cond", *checkify.checkify(lambda x: lax.cond(x < 5, positive, lambda x: x, x))(start))
    report("other branch", *checkify.checkify(lambda x: lax.cond(x > 5, positive, lambda x: x, x))(start))
    report("scan", *checkify.checkify(lambda x: lax.scan(lambda c, a: (positive(c) + a, c), x, jnp.array([1.0, -8.0, 3.0])))(start))
    report("while", *checkify.checkify(lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, positive(c[1] - 0.5)), (0, x)))(start))
    report("gradient", *checkify.checkify(jax.grad(lambda x: positive(x) ** 2))(start))
    report("checkpoint", *checkify.checkify(jax.grad(jax.checkpoint(lambda x: positive(x) ** 2)))(start))
    report("vmap inside", *checkify.checkify(jax.vmap(positive))(jnp.stack([start, start + 2, -start])))
    report("vmap outside", *jax.vmap(checkify.checkify(positive))(jnp.stack([start, start + 2, -start])))
    report("nan", *checkify.checkify(jax.jit(lambda x: jnp.sqrt(x) + 1), errors=checkify.float_checks)(start))
    report("division", *checkify.checkify(lambda x: x / (x - 1), errors=checkify.float_checks)(start))
    report("index", *checkify.checkify(lambda i: jnp.arange(20.0).reshape(4, 5)[1, i], errors=checkify.index_checks)(jnp.array([1, 6]) + jnp.int32(start)))
    report("update", *checkify.checkify(lambda i: jnp.arange(5.0).at[i].set(3.0), errors=checkify.index_checks)(jnp.int32(7 * start)))
    report("slice", *checkify.checkify(lambda i: lax.dynamic_slice(jnp.arange(5.0), (i,), (2,)), errors=checkify.index_checks)(jnp.int32(4 * start)))
    report("relu", *checkify.checkify(lambda x: jax.nn.relu(jnp.log(x)), errors=checkify.all_checks)(start))
    report("user checks off", *checkify.checkify(positive, errors=checkify.nan_checks)(start))
    report("again", *checkify.checkify(lambda x: checkify.check_error(jax.jit(checkify.checkify(positive))(x)[0]))(start))
    report("while condition", *checkify.checkify(lambda x: lax.while_loop(lambda c: 1 / c < 5, lambda c: c - 1, x), errors=checkify.div_checks)(start + 1))

for call in (lambda: positive(jnp.float32(-3)), lambda: jax.jit(positive)(jnp.float32(3)), lambda: checkify.check(jnp.ones(2) > 0, "no"),
             lambda: checkify.checkify(positive)(jnp.float32(-4))[0].throw(), lambda: checkify.check_error(3)):
    try:
        print("passed", call())
    except (ValueError, TypeError) as error:
        print(type(error).__name__, error)
