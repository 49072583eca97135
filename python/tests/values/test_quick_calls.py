"""The fast paths of calls and of x[i] give the results of the general paths."""
import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
import capibara.jax as jax
import capibara.jax.numpy as jnp


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64", "int4"])
@pytest.mark.parametrize("key", [0, -2, (1,), (1, 2), (-1, -3, 2), (0, 0, -1)])
def test_elements_and_rows_are_those_of_numpy(dtype, key):
  x = jnp.arange(24).reshape(2, 3, 4).astype(dtype)
  got, expected = x[key], np.asarray(x)[key]
  assert got.dtype == x.dtype and got.shape == expected.shape
  np.testing.assert_array_equal(np.asarray(got), expected)
  traced = jax.jit(lambda x: x[key])(x)
  np.testing.assert_array_equal(np.asarray(got), np.asarray(traced))


def test_indices_out_of_bounds_are_clamped_and_weak_types_stay_weak():
  x = jnp.arange(5.0)
  assert (float(x[7]), float(x[-9])) == (4.0, 0.0)
  assert jnp.full((3,), 2.0)[1].weak_type and not jnp.ones(3, jnp.float32)[1].weak_type


def test_nans_are_found_where_they_are_read():
  x = jnp.asarray([np.nan, 1], jnp.float32)
  with jax.debug_nans(True), pytest.raises(FloatingPointError):
    x[0]


def test_large_dicts_are_recognised_in_any_order_of_their_keys():
  calls = []

  @jax.jit
  def add_one(leaves):
    calls.append(1)
    return {name: value + 1 for name, value in leaves.items()}

  leaves = {f"leaf {i}": jnp.full((2,), i) for i in range(12)}
  orders = [leaves, leaves, dict(reversed(list(leaves.items()))), {str(name): value for name, value in leaves.items()}]
  for given in orders:
    result = add_one(given)
    assert list(result) == sorted(leaves)
    assert all(int(result[name][0]) == int(value[0]) + 1 for name, value in leaves.items())
  assert len(calls) == 1
  other = dict(leaves)
  other["leaf 3"] = jnp.ones((5,), int)
  assert add_one(other)["leaf 3"].shape == (5,) and len(calls) == 2
  renamed = dict(leaves)
  renamed["z"] = renamed.pop("leaf 3")
  assert "z" in add_one(renamed) and len(calls) == 3
