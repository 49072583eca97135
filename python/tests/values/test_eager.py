"""Operations and jitted functions outside an outer jit run the CPU backend's code: their results are bitwise equal to those under jit."""
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


# Sums of a few hundred float32 numbers: another order, or accumulation in double, shows in the last bits of some rows.
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


def test_an_operation_is_found_by_its_types_attributes_and_settings():
  """The cached entry of one call does not serve another: checks alternating calls against NumPy."""
  a, b = np.arange(12, dtype="float32").reshape(3, 4), np.arange(20, dtype="float32").reshape(4, 5)
  for _ in range(3):
    for dtype in ("float32", "int32", "bfloat16"):
      x, y = jnp.asarray(a).astype(dtype), jnp.asarray(b).astype(dtype)
      assert (x @ y).dtype == dtype and (x @ y[:, 0]).shape == (3,)
      np.testing.assert_allclose(np.asarray(x @ y, "float32"), a @ b, rtol=2e-2)
      np.testing.assert_array_equal(np.asarray(x + x, "float32"), a + a)
    for axis in (0, 1, None):
      np.testing.assert_array_equal(np.asarray(jnp.sum(jnp.asarray(a), axis)), a.sum(axis))
      np.testing.assert_array_equal(np.asarray(jnp.cumsum(jnp.asarray(a), axis)), a.cumsum(axis))
    with jax.enable_x64(True):
      assert (jnp.asarray(a, "float64") @ jnp.asarray(b, "float64")).dtype == "float64"
      assert (jnp.arange(3) * 2).dtype == "int64"
    assert (jnp.arange(3) * 2).dtype == "int32"
    jax.clear_caches()


def test_dot_general_says_how_it_is_called_though_the_last_call_is_remembered():
  x = values(4, 4)
  for _ in range(2):
    assert "precision" not in str(jax.make_jaxpr(lambda v: v @ v)(x))
    with jax.default_matmul_precision("highest"):
      assert "HIGHEST" in str(jax.make_jaxpr(lambda v: v @ v)(x))
    assert "preferred_element_type=float32" in str(jax.make_jaxpr(lambda v: jnp.matmul(v, v))(x))
    text = str(jax.make_jaxpr(lambda v: lax.dot_general(v, v, (((0,), (1,)), ((), ()))))(x))
    assert "preferred_element_type" not in text and "dimension_numbers=(([0], [1]), ([], []))" in text


def test_nan_is_looked_for_in_an_operation_that_ran_before():
  x = jnp.asarray([0.0, 1.0])
  assert np.isnan(np.asarray(x / x)[0])
  with jax.debug_nans(True):
    with pytest.raises(FloatingPointError):
      x / x
  assert np.isnan(np.asarray(x / x)[0])


@pytest.mark.parametrize("call", [
    lambda m: m @ jnp.ones((5, 3)), lambda m: m @ 2.0, lambda m: jnp.ones((2, 3, 4)) @ jnp.ones((3, 4, 2)), lambda m: m @ None
], ids=["sizes", "number", "batches", "None"])
def test_matmul_refuses_what_does_not_fit(call):
  with pytest.raises((TypeError, ValueError)):
    call(values(3, 4))


def test_matmul_takes_arrays_of_numpy_on_either_side():
  a, b = np.ones((2, 3), "float32"), jnp.full((3, 2), 2.0)
  for result in (a @ b, b.T @ a.T):
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(np.asarray(result), np.full((2, 2), 6.0))
