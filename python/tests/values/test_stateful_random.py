"""Stateful random number generators, draws block by block, and searches along dimensions: jax's values."""
import jax as oracle
import numpy as np
import pytest
from jax._src import blocked_sampler as oracle_blocks
from jax._src.numpy import hijax as oracle_searches
from jax.experimental import random as oracle_random

import capibara.jax as jax
from capibara.jax._src import blocked_sampler
from capibara.jax._src.numpy import hijax
from capibara.jax.experimental import random


def draws(module, source):
  generator = source.stateful_rng(7)
  values = [generator.uniform(size=3), generator.normal(1.0, 2.0, (2, 2)), generator.integers(0, 10, 4), generator.random()]
  values += [module.random.key_data(generator.key(2)), module.jit(generator.uniform)(), generator.uniform()]
  values += [child.uniform() for child in generator.spawn(2)]
  return values + [module.vmap(lambda child, x: x + child.uniform())(generator.split(3), np.arange(3.0, dtype=np.float32))]


def test_draws_are_those_of_jax():
  for got, want in zip(draws(jax, random), draws(oracle, oracle_random), strict=True):
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_generator_without_a_seed_begins_outside_of_traced_functions():
  assert random.stateful_rng().uniform(size=2).shape == (2,)
  with pytest.raises(TypeError, match="requires an explicit seed"):
    jax.jit(lambda: random.stateful_rng().uniform())()
  with pytest.raises(ValueError, match="Expected counter to be a scalar integer ref"):
    random.StatefulPRNG(jax.random.key(0), 0)


def test_blocks_are_those_of_jax():
  def block(module, source):
    keys = source.blocked_fold_in(module.random.key(3), (8, 8), (4, 8), (4, 4), (1, 0))
    return source.sample_block(module.random.uniform, keys, (4, 8), (4, 4))
  np.testing.assert_array_equal(block(jax, blocked_sampler), block(oracle, oracle_blocks))


def test_searches_along_dimensions():
  lines = np.sort(np.random.RandomState(0).randn(2, 3, 5).astype(np.float32), axis=1)
  values = np.random.RandomState(1).randn(2, 4).astype(np.float32)
  for peer in (hijax, oracle_searches):
    found = peer.searchsorted(lines, values, dimension=1, batch_dims=1, side="right", dtype="uint32")
    assert found.dtype == np.uint32 and found.shape == (2, 5, 4)
    np.testing.assert_array_equal(found, [[np.searchsorted(line, row, "right") for line in part.T] for part, row in zip(lines, values)])
    places = peer.nonzero(lines > 0, size=2, axes=(1,))
    np.testing.assert_array_equal(places[0], hijax.nonzero(lines > 0, size=2, axes=(1,))[0])
  with pytest.raises(ValueError, match=r"dimension=3 must be in range \[1, 3\)"):
    hijax.searchsorted(lines, values, dimension=3, batch_dims=1)
