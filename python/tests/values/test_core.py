"""The extension runs StableHLO text written by jax, and returns jax's values."""
import numpy as np
import pytest

capibara = pytest.importorskip("capibara._core", reason="the Python extension is not built")


def lowered(function, *arguments):
  jax = pytest.importorskip("jax")
  return jax.jit(function).lower(*arguments).as_text(), [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*arguments))]


def test_runs_a_gradient_traced_by_jax():
  jax = pytest.importorskip("jax")
  w, x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), np.ones((4, 3), np.float32)
  text, expected = lowered(jax.grad(lambda w, x: jax.lax.tanh(x @ w).sum()), w, x)
  (got,) = capibara.run_stablehlo(text, [w, x])
  np.testing.assert_allclose(got, expected[0], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int4", "float64", "int64", "complex64", "bool"])
def test_runs_every_type_of_numpy_and_ml_dtypes(dtype):
  ml_dtypes = pytest.importorskip("ml_dtypes")
  numpy_type = np.dtype(getattr(ml_dtypes, dtype, dtype))
  name = {"bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "int4": "i4", "float64": "f64", "int64": "i64",
          "complex64": "complex<f32>", "bool": "i1"}[dtype]
  text = f"""func.func @main(%a: tensor<4x{name}>) -> (tensor<4x{name}>, tensor<4xi1>) {{
    %0 = stablehlo.reverse %a, dims = [0] : tensor<4x{name}>
    %1 = stablehlo.compare EQ, %a, %0 : (tensor<4x{name}>, tensor<4x{name}>) -> tensor<4xi1>
    return %0, %1 : tensor<4x{name}>, tensor<4xi1>
  }}"""
  given = np.array([0, 1, 1, 1]).astype(numpy_type)
  turned, equal = capibara.run_stablehlo(text, [given])
  assert turned.dtype == numpy_type and equal.dtype == np.bool_
  np.testing.assert_array_equal(turned.astype(np.complex64), given[::-1].astype(np.complex64))
  np.testing.assert_array_equal(equal, [False, True, True, False])


def test_wrong_arguments_are_type_errors():
  text = "func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
  with pytest.raises(TypeError, match="takes 1 arguments, got 0"):
    capibara.run_stablehlo(text, [])
  with pytest.raises(TypeError, match=r"argument 0 must be float32\[2\], got float32\[3\]"):
    capibara.run_stablehlo(text, [np.zeros(3, np.float32)])


def test_malformed_text_is_a_value_error():
  with pytest.raises(ValueError, match="1:"):
    capibara.run_stablehlo("this is not a module", [])


def test_waiting_for_a_tree_waits_for_every_leaf_that_can_be_waited_for():
  import capibara.jax as cj

  class Later:
    waits = 0

    def block_until_ready(self):
      Later.waits += 1

  x, later = cj.numpy.arange(5), Later()
  for tree in (x, [x, (x, None)], {"a": x, "b": [1, "word"]}, np.ones(3), None, [later, {"b": later}]):
    assert cj.block_until_ready(tree) is tree
  assert Later.waits == 2
  long = cj.jit(lambda a: {"product": a @ a, "sum": [a + 1]})(cj.numpy.ones((1024, 1024)))
  assert cj.block_until_ready(long)["product"].is_ready()
  x.delete()
  with pytest.raises(RuntimeError, match="deleted"):
    cj.block_until_ready([x])
