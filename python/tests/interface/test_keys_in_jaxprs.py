"""Jaxprs with PRNG keys as constants: pruned, rebuilt and evaluated as in jax."""
import jax as oracle
import jax.extend.core as oracle_core
import jax.interpreters.partial_eval as oracle_pe
import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.extend.core as core
import capibara.jax.interpreters.partial_eval as pe

PEERS = [pytest.param((jax, pe, core), id="capibara"), pytest.param((oracle, oracle_pe, oracle_core), id="jax")]
KINDS = ["threefry2x32", "rbg", "unsafe_rbg"]
X = np.arange(3, dtype=np.float32)


def words(library, value):
  return np.asarray(library.random.key_data(value) if "key" in str(value.dtype) else value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("peer", PEERS)
def test_jaxprs_with_keys_are_pruned_and_rebuilt(peer, kind):
  library, partial_eval, extend = peer
  key, keys = library.random.key(3, impl=kind), library.random.split(library.random.key(4, impl=kind), 2)
  closed = library.make_jaxpr(lambda x, y: (x + library.random.normal(key, (3,)), key, keys[0], y))(X, X)
  pruned, used = partial_eval.dce_jaxpr(closed.jaxpr, [True, True, True, False])
  assert used == [True, False] and [str(var.aval.dtype) for var in pruned.constvars] == [str(const.dtype) for const in closed.consts]
  found = extend.jaxpr_as_fun(extend.ClosedJaxpr(pruned, closed.consts))(X)
  whole = extend.jaxpr_as_fun(closed)(X, X)
  for one, other in zip(found, whole[:3], strict=True):
    np.testing.assert_array_equal(words(library, one), words(library, other))


@pytest.mark.parametrize("kind", KINDS)
def test_jaxprs_with_keys_are_pruned_while_something_is_traced(kind):
  """As libraries do to find loop invariants."""
  def values(library, partial_eval, extend):
    key = library.random.key(3, impl=kind)

    def f(x):
      closed = library.make_jaxpr(lambda y: (library.random.normal(key, (3,)), y))(X)
      pruned, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True, False])
      return x + extend.jaxpr_as_fun(extend.ClosedJaxpr(pruned, closed.consts))()[0]
    return library.jit(f)(X), library.lax.scan(lambda c, x: (f(c), x), X, X)[0]
  for one, other in zip(values(jax, pe, core), values(oracle, oracle_pe, oracle_core), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-6)
