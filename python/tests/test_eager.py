"""Operations and jitted functions outside of an outer jit run the code of the CPU backend: their bits are those under jit."""
import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax


def values(*shape):
  return jnp.asarray(np.random.RandomState(len(shape)).randn(*shape), "float32")


def same_bits(got, want):
  jax.tree.map(lambda a, b: np.testing.assert_array_equal(np.asarray(a), np.asarray(b)), got, want)


# Sums of a few hundred float32 numbers: another order, or sums in double, shows in the last bits of some of the rows.
ROWS = values(64, 300)


def loss(row):
  return jnp.sum(jnp.tanh(row) * 0.1 + row * row)


@pytest.mark.parametrize("transform", [
    lambda f: jax.vmap(f),
    lambda f: jax.vmap(jax.grad(f)),
    lambda f: lambda x: jax.vmap(lambda row: jax.jvp(f, (row,), (row,)))(x),
    lambda f: lambda x: jax.jvp(jax.vmap(f), (x,), (x,)),
    lambda f: lambda x: jax.vjp(jax.vmap(f), x)[1](jnp.ones(64)),
], ids=["vmap", "vmap of grad", "vmap of jvp", "jvp of vmap", "vjp of vmap"])
def test_jit_under_an_eager_transform_runs_what_jit_compiles(transform):
  same_bits(transform(jax.jit(loss))(ROWS), jax.jit(transform(loss))(ROWS))


def test_jit_with_a_callback_under_an_eager_transform_calls_it_in_order():
  seen = []

  @jax.jit
  def f(x):
    for i in range(3):
      jax.debug.callback(lambda v, i=i: seen.append((i, float(v))), x * i, ordered=True)
    return x * 3

  assert float(jax.jvp(f, (2.0,), (1.0,))[1]) == 3.0
  assert seen == [(0, 0.0), (1, 2.0), (2, 4.0)]


@pytest.mark.parametrize("name", ["matrix product", "batched product", "vector product", "convolution", "window", "cumulative"])
def test_operations_on_few_elements_run_the_kernels_of_the_backend(name):
  operations = {
      "matrix product": (lambda a, b: a @ b, values(33, 300), values(300, 21)),
      "batched product": (lambda a, b: a @ b, values(5, 20, 150), values(5, 150, 20)),
      "vector product": (lambda a, b: a @ b, values(50, 300), values(300)),
      "convolution": (lambda a, b: lax.conv(a, b, (1, 1), "SAME"), values(2, 6, 12, 12), values(4, 6, 5, 5)),
      "window": (lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 7, 7), (1, 1, 1), "SAME"), values(3, 30, 30)),
      "cumulative": (lambda a: jnp.cumsum(a, axis=1), values(20, 300)),
  }
  function, *arguments = operations[name]
  same_bits(function(*arguments), jax.jit(function)(*arguments))


@pytest.mark.parametrize("elements", [100, 100_000])
@pytest.mark.parametrize("name", ["copy", "array", "of a tree", "jit"])
def test_a_copy_outlives_what_was_donated(elements, name):
  copies = {"copy": jnp.copy, "array": jnp.array, "jit": jax.jit(lambda x: x), "of a tree": lambda x: jax.tree.map(jnp.array, [x])[0]}
  x = jnp.arange(elements) * 2.0
  y = copies[name](x)
  jax.jit(lambda x: x + 1, donate_argnums=0)(x)
  assert x.is_deleted() and not y.is_deleted()
  np.testing.assert_array_equal(y, np.arange(elements) * 2.0)


def test_an_argument_that_is_donated_and_returned_can_be_donated_again():
  step = jax.jit(lambda state, x: (x.sum() + state[0].sum(), [state[0], state[1] + 1]), donate_argnums=0)
  state = [jnp.ones((784, 200)), jnp.ones(2)]
  for count in range(12):
    total, state = step(state, jnp.ones(3))
  assert float(total) == 784 * 200 + 3 and state[1].tolist() == [13.0, 13.0]
