"""Dot products of a short vector with an axis of an array, which compile to sums fused with their neighbours."""
import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax

# Shapes of both operands, and ((contracting), (batch)) dimensions.
CASES = [
  ((7,), (64, 7, 2), (([0], [1]), ([], []))), ((7, 64), (64, 7, 2), (([0], [1]), ([1], [0]))),
  ((64, 7, 2), (64, 7), (([1], [1]), ([0], [0]))), ((64, 3), (64, 3), (([1], [1]), ([0], [0]))),
  ((5,), (5, 40), (([0], [0]), ([], []))), ((40, 5, 3), (5,), (([1], [0]), ([], []))),
  ((4, 3, 6), (3, 4, 6, 9), (([2], [2]), ([1, 0], [0, 1]))), ((9, 4), (4, 9, 5, 3), (([0], [1]), ([1], [0]))),
  ((4, 9, 5, 3), (3, 4), (([3], [0]), ([0], [1]))), ((0,), (0, 5, 70), (([0], [0]), ([], []))),
  ((6, 4), (9, 6, 4), (([0], [1]), ([1], [2])))]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
@pytest.mark.parametrize("left,right,dims", CASES)
def test_values_are_those_of_jax(left, right, dims, dtype):
  draw = np.random.default_rng(0)
  x, y = (4 * draw.normal(size=left)).astype(dtype), (4 * draw.normal(size=right)).astype(dtype)
  got, want = (np.asarray(peer.jit(lambda x, y, peer=peer: peer.lax.dot_general(x, y, dims))(x, y)) for peer in (jax, oracle))
  np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_nan_and_inf_stay_where_they_are():
  k = np.ones((64, 7, 2), np.float32)
  k[3, 2, 1], k[5, 0, 0], k[6, 1, 1], k[6, 2, 1] = np.nan, np.inf, np.inf, -np.inf
  w = np.float32([1, 0, 1, 1, 0, 2, 1])
  got, want = (np.asarray(peer.jit(lambda w, k, peer=peer: peer.numpy.tensordot(w, k, (0, 1)))(w, k)) for peer in (jax, oracle))
  np.testing.assert_array_equal(got, want)
