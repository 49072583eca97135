"""The tables of jax.interpreters: rules of the catalog's primitives can be read as in jax, and replaced."""
import subprocess
import sys

import jax as oracle
import numpy as np
import pytest
from jax._src.interpreters import ad as oracle_ad

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.interpreters import ad, batching


def values(tree):
  return [np.asarray(leaf) for leaf in tree]


def test_jvp_rules_are_those_of_jax():
  x, t = np.float32([0.5, 1.0]), np.float32([2.0, 3.0])
  got = ad.primitive_jvps[jax.lax.sin_p]((jnp.asarray(x),), (jnp.asarray(t),))
  want = oracle_ad.primitive_jvps[oracle.lax.sin_p]((oracle.numpy.asarray(x),), (oracle.numpy.asarray(t),), accuracy=None)
  np.testing.assert_allclose(values(got), values(want), rtol=1e-6)


def test_transpose_rules_give_the_values_of_jax():
  y, cotangent = np.float32([2.0, 3.0]), np.float32([5.0, 7.0])
  x = ad.UndefinedPrimal(jax.ShapeDtypeStruct((2,), np.float32))
  got = ad.primitive_transposes[jax.lax.mul_p](jnp.asarray(cotangent), x, jnp.asarray(y))
  want, = oracle.linear_transpose(lambda x: x * y, np.zeros(2, np.float32))(cotangent)
  np.testing.assert_array_equal(got[0], want)
  assert got[1] is None


def test_batch_rules_give_the_values_of_jax():
  x, y = np.ones((4, 3), np.float32), np.arange(3, dtype=np.float32)
  got, dim = batching.primitive_batchers[jax.lax.add_p]((jnp.asarray(x), jnp.asarray(y)), (0, None))
  want = oracle.vmap(oracle.lax.add, (0, None))(x, y)
  np.testing.assert_array_equal(np.moveaxis(np.asarray(got), dim, 0), want)


def test_a_primitive_without_a_rule_has_no_entry():
  assert jax.lax.eq_p in batching.primitive_batchers
  with pytest.raises(KeyError):
    ad.primitive_transposes[jax.lax.sin_p]


def test_a_replaced_rule_serves_transformations():
  program = """
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.interpreters import ad
ad.primitive_jvps[jax.lax.cbrt_p] = lambda primals, tangents, **params: (jax.lax.cbrt_p.bind(*primals, **params), 10 * tangents[0])
print(jax.grad(jnp.cbrt)(8.0), jax.jit(jax.grad(jnp.cbrt))(8.0))
"""  # in a separate process: all tests share the catalog
  assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() == ["10.0", "10.0"]


def test_an_empty_list_of_places_may_be_of_floats():
  parts = jnp.split(jnp.arange(4.0), np.cumsum([]))
  assert len(parts) == 1 and parts[0].shape == (4,)
