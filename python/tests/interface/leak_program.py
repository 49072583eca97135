"""Many calls, traces and failures, which LeakSanitizer checks for leaks: ./run sanitize python."""
import sys

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp


@jax.custom_vjp
def scaled(x, tree):
  return x * tree["a"]


scaled.defvjp(lambda x, tree: (scaled(x, tree), tree), lambda tree, g: (g * tree["a"], None))


@jax.custom_jvp
def squared(x):
  return x * x


squared.defjvp(lambda primals, tangents: (squared(*primals), 2 * primals[0] * tangents[0]), symbolic_zeros=True)

TRACES = (
  lambda x: jax.jit(lambda a: jnp.sin(a) * 2 + 1)(x),
  lambda x: jax.grad(lambda a: (squared(a) + scaled(a, {"a": 3.0})).sum())(x),
  lambda x: jax.vmap(lambda a: a * 2)(x),
  lambda x: jax.make_jaxpr(lambda a: jax.lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a))(x),
  lambda x: jax.lax.scan(lambda carry, a: (carry + a, [carry]), 0.0, x),
  lambda x: jax.jit(jax.checkpoint(lambda a, n: a * n, static_argnums=1), static_argnums=1)(x, 2),
)


def fails(call):
  try:
    call()
  except (TypeError, ValueError, IndexError):
    return
  raise AssertionError("the call must fail")


FAILURES = (
  lambda x: jax.jit(lambda a: float(a.sum()))(x),
  lambda x: jax.vmap(lambda a: 1 if a > 0 else 2)(x),
  lambda x: jnp.reshape(x, (2, 2)),
  lambda x: x[1, 2],
  lambda x: jax.grad(lambda a: a)(x),
  lambda x: jax.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}),
)


def main(count):
  x = jnp.arange(3.0)
  jitted = jax.jit(lambda a, b: {"sum": a + b["c"], "rest": [a, b]})
  for _ in range(count):
    jitted(x, {"c": 2.0})
    x.at[1].set(2.0) + np.asarray(x)
    jax.tree.map(jnp.add, {"a": 1, "b": [2, 3.0]}, {"a": 1, "b": [2, 3.0]})
  for i in range(count):
    TRACES[i % len(TRACES)](x)
    fails(lambda: FAILURES[i % len(FAILURES)](x))
  jax.clear_caches()
  print(f"{count} calls, traces and failures")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
