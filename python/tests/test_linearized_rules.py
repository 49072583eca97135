"""Linearized functions of custom_vjp along a mapped axis: they transpose to the user's rule, and have no forward derivative."""
import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp

X = np.array([0.5, -1.0, 2.0], np.float32)
PEERS = [pytest.param(jax, id="capibara"), pytest.param(oracle, id="jax")]


def ruled(jax):
  """A function whose backward rule is not its derivative, so that the rule is seen to be used."""
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


@pytest.mark.parametrize("mapped", ["tangents", "residuals", "both"])
def test_a_batched_linear_map_transposes_to_the_rule_of_each_lane(mapped):
  f, eye = ruled(jax), np.eye(3, dtype=np.float32)
  points = np.stack([X, 2 * X]) if mapped != "tangents" else X[None]
  cotangents = {"a": eye[:2] + 1, "b": eye[1:] - 2}

  def lane(x, t):
    return jax.linearize(f, x, X)[1](t, jnp.zeros(3))

  if mapped == "tangents":
    batched = lambda t: jax.vmap(lane, (None, 0))(points[0], t)
  elif mapped == "residuals":
    batched = lambda t: jax.vmap(lane, (0, None))(points, t)
  else:
    batched = lambda t: jax.vmap(lane)(points, t)
  tangent = jnp.zeros((2, 3)) if mapped != "residuals" else jnp.zeros(3)
  found, = jax.linear_transpose(batched, tangent)({k: jnp.asarray(v) for k, v in cotangents.items()})
  lanes = [3 * cotangents["a"][i] + points[i % len(points)] * cotangents["b"][i] for i in range(2)]
  np.testing.assert_allclose(found, sum(lanes) if mapped == "residuals" else np.stack(lanes), rtol=1e-6)
  wanted = oracle.vmap(lambda x, g: oracle.vjp(lambda x: ruled(oracle)(x, X), x)[1](g)[0],
                       (None if mapped == "tangents" else 0, 0))(points[0] if mapped == "tangents" else points, cotangents)
  np.testing.assert_allclose(found, wanted.sum(0) if mapped == "residuals" else wanted, rtol=1e-6)
