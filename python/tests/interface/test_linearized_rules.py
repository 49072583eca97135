"""Linearized functions of custom_vjp along a mapped axis: they have no forward derivative."""
import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax

X = np.array([0.5, -1.0, 2.0], np.float32)
PEERS = [pytest.param(jax, id="capibara"), pytest.param(oracle, id="jax")]


def ruled(jax):
  """A function whose backward rule is not its derivative, which shows that the rule is used."""
  f = jax.custom_vjp(lambda x, y: {"a": x * y.sum(), "b": jax.numpy.sin(x)})

  def backward(saved, g):
    x, y = saved
    return 3 * g["a"] + x * g["b"], (g["a"] * x).sum() * jax.numpy.ones_like(y)
  f.defvjp(lambda x, y: (f(x, y), (x, y)), backward)
  return f


@pytest.mark.parametrize("wrap", ["eager", "jit"])
@pytest.mark.parametrize("peer", PEERS)
def test_forward_derivatives_along_an_axis_are_refused_as_in_jax(peer, wrap):
  f = ruled(peer)
  jit = peer.jit if wrap == "jit" else lambda g: g
  linear = peer.linearize(lambda x: f(x, X)["b"], X)[1]
  for call in (lambda: jit(peer.vmap(linear))(np.eye(3, dtype=np.float32)),
               lambda: jit(peer.jacfwd(lambda x: f(x, X)["b"]))(X)):
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
      call()
