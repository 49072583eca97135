"""Counts how often functions are traced, by what they append to a list; run under jax and under capibara."""
import functools
import gc
import json
import sys
import weakref

if sys.argv[1] == "jax":
  import jax
else:
  import capibara.jax as jax
jnp, lax = jax.numpy, jax.lax


def counted(body):
  """The body as a function that counts its traces."""
  calls = []

  @functools.wraps(body)
  def function(*args):
    calls.append(1)
    return body(*args)

  return function, calls


def jit_of_one_function_in_a_loop():
  f, calls = counted(lambda x: x + 1)
  values = [float(jax.jit(f)(1.0)) for _ in range(3)]
  return values, len(calls)


def jit_of_partial_objects():
  f, calls = counted(lambda y, x: x + y)
  p = functools.partial(f, 2.0)
  values = [float(jax.jit(p)(1.0)) for _ in range(2)]
  return values, len(calls)


def jit_of_other_closures():
  calls = []

  def make(y):
    def f(x):
      calls.append(1)
      return x + y
    return f

  return [float(jax.jit(make(y))(1.0)) for y in (1.0, 2.0, 3.0)], len(calls)


def cache_sizes():
  def f(x):
    return x * 2
  one, two = jax.jit(f), jax.jit(f)
  one(1.0)
  sizes = [one._cache_size(), two._cache_size()]
  two(1.0)
  two(1)
  sizes += [one._cache_size(), two._cache_size()]
  one.clear_cache()
  return sizes + [one._cache_size()]


def clear_caches_forgets_traces():
  f, calls = counted(lambda x: x - 1)
  g = jax.jit(f)
  g(1.0)
  g(1.0)
  before = len(calls)
  jax.clear_caches()
  value = float(g(3.0))
  return before, len(calls), value


def clear_caches_forgets_transformed_programs():
  f, calls = counted(lambda x: jnp.sin(x) * x)
  g = jax.jit(jax.grad(f))
  g(1.0)
  jax.clear_caches()
  g(1.0)
  g(2.0)
  return len(calls)


def loops_trace_their_bodies_once():
  body, calls = counted(lambda x: x + 1)
  condition, asked = counted(lambda x: x < 5)
  values = [int(lax.while_loop(condition, body, 0)) for _ in range(4)]
  return values, len(calls), len(asked)


def scans_trace_their_bodies_once():
  body, calls = counted(lambda c, x: (c + x, c * x))
  results = [lax.scan(body, jnp.float32(i), jnp.arange(3.0)) for i in range(3)]
  once = len(calls)
  lax.scan(body, jnp.float32(0), jnp.arange(4.0))  # a slice has the same type
  lax.scan(body, jnp.int32(0), jnp.arange(4))
  return [float(c) for c, _ in results], [float(y.sum()) for _, y in results], once, len(calls)


def branches_are_traced_once():
  yes, calls = counted(lambda x: x + 1)
  no, others = counted(lambda x: x - 1)
  values = [float(lax.cond(i % 2 == 0, yes, no, 1.0)) for i in range(4)]
  values += [float(lax.switch(i, [yes, no], 1.0)) for i in range(2)]
  return values, len(calls) <= 2, len(others) <= 2


def counted_loops_trace_their_bodies_once():
  body, calls = counted(lambda i, x: x + i)
  return [float(lax.fori_loop(0, 3, body, 1.0)) for _ in range(3)], len(calls)


def bodies_that_capture_traced_values():
  def f(w):
    def body(c, x):
      return c * w + x, c
    return lax.scan(body, 1.0, jnp.arange(3.0))[0]
  return [float(jax.grad(f)(w)) for w in (1.0, 2.0)], [float(v) for v in jax.vmap(f)(jnp.arange(3.0))]


def bodies_with_named_axes():
  def body(c, x):
    return c + lax.psum(x, "i"), None

  def f(xs):
    return lax.scan(body, 0.0, xs)[0]
  return [jax.vmap(f, axis_name="i")(jnp.ones((n, 3))).tolist() for n in (2, 4)]


def bodies_that_ask_for_the_size_of_an_axis():
  def body(c, x):
    return c + x * lax.psum(1, "i"), None

  def f(xs):
    return lax.scan(body, 0.0, xs)[0]
  return [jax.vmap(f, axis_name="i")(jnp.ones((n, 3))).tolist() for n in (2, 4)]


def functions_are_not_kept_alive():
  def f(x):
    return x + 1
  jax.jit(f)(1.0)
  lax.fori_loop(0, 3, lambda i, x: x + i, 1.0)
  gone = weakref.ref(f)
  del f
  gc.collect()
  return gone() is None


if __name__ == "__main__":
  found = {name: one() for name, one in list(globals().items()) if callable(one) and getattr(one, "__module__", "") == "__main__" and name != "counted"}
  print(json.dumps(found))
