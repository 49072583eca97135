"""capibara.kernels: fused operations have the values and derivatives of jax's composition, under every transform."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import draw

pytestmark = pytest.mark.wide

TOLERANCE = {"float32": 2e-5, "bfloat16": 4e-2, "float16": 4e-3}


X, SCALE, BIAS, WEIGHTS = draw(0, 6, 5, 40), draw(1, 40), draw(2, 40), draw(3, 6, 5, 40)


def composition(x, scale, bias, epsilon=1e-5):
  """In float32, rounded once: the definition."""
  wide = x.astype("float32")
  centered = wide - wide.mean(-1, keepdims=True)
  normal = centered * oracle.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + epsilon)
  return (normal * scale.astype("float32") + bias.astype("float32")).astype(x.dtype)


def close(got, want, tolerance):
  for one, other in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    assert str(one.dtype) == str(other.dtype) and one.shape == other.shape
    np.testing.assert_allclose(np.asarray(one, "float32"), np.asarray(other, "float32"), rtol=tolerance, atol=tolerance)


def operands(dtype, module):
  return tuple(module.asarray(a).astype(dtype) for a in (X, SCALE, BIAS))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_layer_norm_has_the_values_of_its_definition(dtype, wrap):
  close(wrap(kernels.layer_norm)(*operands(dtype, jnp)), composition(*operands(dtype, oracle.numpy)), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_layer_norm_has_the_gradients_of_its_definition(dtype, wrap):
  def loss(norm):
    return lambda *args: (norm(*args).astype("float32") * WEIGHTS).sum()

  got = wrap(jax.grad(loss(kernels.layer_norm), (0, 1, 2)))(*operands(dtype, jnp))
  want = oracle.grad(loss(composition), (0, 1, 2))(*operands(dtype, oracle.numpy))
  close(got, want, 20 * TOLERANCE[dtype])


TRANSFORMS = {
    "vmap": lambda jax, norm: jax.vmap(norm, (1, None, None))(X, SCALE, BIAS),
    "vmap over scales": lambda jax, norm: jax.vmap(norm, (0, 0, None))(X, draw(5, 6, 40), BIAS),
    "jvp": lambda jax, norm: jax.jvp(norm, (X, SCALE, BIAS), (WEIGHTS, BIAS, SCALE)),
    "vmap of grad": lambda jax, norm: jax.vmap(jax.grad(lambda x, s: (norm(x, s, BIAS) ** 2).sum(), (0, 1)), (0, None))(X, SCALE),
    "grad of jit of vmap": lambda jax, norm: jax.grad(
        lambda x: (jax.jit(jax.vmap(norm, (0, None, None)))(x, SCALE, BIAS) * WEIGHTS).sum())(X),
    "grad of grad": lambda jax, norm: jax.grad(
        lambda x: (jax.grad(lambda v: (norm(v, SCALE, BIAS) ** 3).sum())(x) * WEIGHTS[0, 0]).sum())(X[0, 0]),
    "jacfwd": lambda jax, norm: jax.jacfwd(norm)(X[0, 0], SCALE, BIAS),
    "jacrev": lambda jax, norm: jax.jacrev(norm)(X[0, 0], SCALE, BIAS),
    "checkpoint": lambda jax, norm: jax.grad(jax.checkpoint(lambda x: (jax.numpy.sin(norm(x, SCALE, BIAS)) * WEIGHTS).sum()))(X),
    "scan": lambda jax, norm: jax.grad(lambda s: jax.lax.scan(lambda c, x: (norm(c + x, s, BIAS), None), X[0], X)[0].sum())(SCALE),
    "epsilon": lambda jax, norm: norm(X, SCALE, BIAS, epsilon=0.5),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_layer_norm_under_transforms(name):
  close(TRANSFORMS[name](jax, kernels.layer_norm), TRANSFORMS[name](oracle, composition), 1e-3)


def test_it_is_one_operation():
  text = str(jax.make_jaxpr(kernels.layer_norm)(X, SCALE, BIAS))
  assert "layer_norm[epsilon=1e-05]" in text
  assert "stablehlo.rsqrt" in jax.jit(kernels.layer_norm).lower(X, SCALE, BIAS).as_text()


def test_the_module_is_reachable_and_described():
  assert capibara.kernels is kernels
  assert kernels.layer_norm.__module__ == "capibara.kernels"
  assert kernels.layer_norm.__doc__.startswith("layer_norm(x, scale, bias, *, epsilon")
  with pytest.raises(AttributeError, match="Did you mean: 'layer_norm'"):
    kernels.layernorm


@pytest.mark.parametrize("arguments, words", [
    ((X, SCALE[:3], BIAS), "layer_norm: expected float32[40] (argument 'scale'), got float32[3]"),
    ((X, SCALE, jnp.zeros(40, "int32")), "layer_norm: expected float32[40] (argument 'bias'), got int32[40]"),
    ((jnp.float32(1), SCALE, BIAS), "layer_norm: expected a floating array of rank 1 or more (argument 'x'), got float32[]"),
])
def test_wrong_arguments_are_named(arguments, words):
  for call in (kernels.layer_norm, jax.jit(kernels.layer_norm)):
    with pytest.raises(TypeError) as caught:
      call(*arguments)
    assert words in str(caught.value)
