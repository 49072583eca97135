"""Shared by the tests of fused kernels: operands, comparisons with another library's results, rejected calls."""

import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax


def draw(seed, *shape):
  return np.asarray(np.random.RandomState(seed).randn(*shape), "float32")


def close(got, want, tolerance=1e-5):
  for one, other in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    assert one.shape == other.shape
    np.testing.assert_allclose(np.asarray(one, "float64"), np.asarray(other, "float64"), rtol=tolerance, atol=tolerance)


def refuses(call, *words):
  with pytest.raises((TypeError, ValueError)) as caught:
    call()
  for word in words:
    assert word in str(caught.value), caught.value
