"""jax.experimental.roofline counts what jax's does, of single operations, nested programs, derivatives and collectives."""
import dataclasses
import importlib

import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax

PEERS = [(module, importlib.import_module(f"{module.__name__}.experimental.roofline")) for module in (jax, oracle)]
x, y, which = np.zeros((3, 8), np.float32), np.zeros((8, 5), np.float32), np.zeros(3, np.int32)


def compare(make, *args, **options):
  """make(jax module) is the function to count."""
  got, want = (roofline.roofline(make(module), **options)(*args) for module, roofline in PEERS)
  shapes = [[(leaf.shape, leaf.dtype) for leaf in module.tree_util.tree_leaves(out)] for (module, _), (out, _) in zip(PEERS, (got, want))]
  assert shapes[0] == shapes[1]
  assert dataclasses.asdict(got[1]) == dataclasses.asdict(want[1])
  return got[1]


@pytest.mark.parametrize("name", ["abs", "exp", "logistic", "erf_inv", "neg", "sign", "square", "is_finite"])
def test_elementwise(name):
  assert compare(lambda module: getattr(module.lax, name), x).unfused_flops == x.size


def test_operations():
  compare(lambda module: lambda x: x + 2.0, x)
  compare(lambda module: lambda x, y: module.numpy.maximum(x @ y, 0), x, y)
  compare(lambda module: lambda x, y: x @ y, x, y, pin_lhs_in_vmem=True)
  compare(lambda module: lambda x, y: x @ y, x, y, pin_rhs_in_vmem=True)
  compare(lambda module: lambda x: module.numpy.sum(x, axis=1), x)
  compare(lambda module: lambda x: module.lax.cumsum(x, axis=1), x)
  compare(lambda module: lambda x: module.lax.cumlogsumexp(x, axis=0), x)
  compare(lambda module: lambda x: module.lax.select_n(x > 0, x, x * 2), x)
  for mode in ("fill", "clip", "promise_in_bounds"):
    compare(lambda module: lambda x, i: module.numpy.asarray(x).at[i].get(mode=mode), x, which)
  for name in ("set", "add", "multiply", "max"):
    compare(lambda module: lambda x, i: getattr(module.numpy.asarray(x).at[i], name)(1.0), x, which)
  compare(lambda module: lambda x, i: module.numpy.asarray(x).at[i].apply(lambda v: module.numpy.sin(v) + v**2), x, which)


def test_nested_programs():
  compare(lambda module: lambda x: module.jit(lambda x: module.numpy.sin(x) * 3)(x) + module.jit(module.numpy.cos)(x), x)
  compare(lambda module: lambda x: module.lax.scan(lambda c, v: (c + v, c * v), x[0], x), x)
  compare(lambda module: module.nn.relu, x)
  compare(lambda module: lambda x: module.pure_callback(np.sin, module.ShapeDtypeStruct(x.shape, x.dtype), x), x)
  compare(lambda module: lambda x: module.numpy.sum(module.numpy.sin(x)**2), x.astype(jax.numpy.bfloat16), vjp=True)


def test_convolutions():
  image, kernel = np.zeros((2, 6, 11, 9), np.float32), np.zeros((4, 6, 3, 2), np.float32)
  for options in ({"padding": "SAME"}, {"padding": "VALID"}, {"padding": ((1, 2), (0, 3)), "window_strides": (2, 3)},
                  {"padding": ((2, 2), (1, 1)), "lhs_dilation": (2, 3)}, {"padding": "VALID", "rhs_dilation": (3, 2)},
                  {"padding": ((5, 0), (1, 4)), "window_strides": (3, 2), "lhs_dilation": (2, 4), "rhs_dilation": (2, 3)}):
    compare(lambda module: lambda a, b: module.lax.conv_general_dilated(a, b, **{"window_strides": (1, 1), **options}), image, kernel)
  grouped = np.zeros((6, 1, 3, 2), np.float32)
  compare(lambda module: lambda a, b: module.lax.conv_general_dilated(a, b, (1, 1), "VALID", feature_group_count=6), image, grouped)


def test_positions_of_convolutions_meet_inputs():
  positions = importlib.import_module("capibara.jax.experimental.roofline.rooflines")._valid_positions
  draw = np.random.RandomState(0).randint
  for _ in range(300):
    size, kernel, out, stride, low, dilation, kernel_dilation = map(int, draw([1, 1, 0, 1, -3, 1, 1], [9, 5, 9, 6, 6, 6, 4]))
    met = [o * stride - low + k * kernel_dilation for k in range(kernel) for o in range(out)]
    want = sum(place % dilation == 0 and 0 <= place // dilation < size for place in met)
    assert positions(size, kernel, out, stride, low, dilation, kernel_dilation) == want


def test_collectives():
  if len(jax.devices()) > 1 or len(oracle.devices()) > 1:
    pytest.skip("meshes of abstract devices are enough")
  results = []
  for module, roofline in PEERS:
    mesh = module.sharding.AbstractMesh((2, 4), ("a", "b"))
    spec = module.sharding.PartitionSpec

    def exchange(v, w):
      lax = module.lax
      v = lax.psum(lax.all_gather(v, "a", axis=1, tiled=True), ("a", "b"))
      w = lax.ppermute(w, "b", perm=((0, 2), (1, 0), (2, 1), (3, 3)))
      return v, lax.all_to_all(w, "b", split_axis=0, concat_axis=1, tiled=True), lax.pmax(w, ("a", "b"))
    specs = {"in_specs": (spec("a", "b"), spec("b", "a")), "out_specs": (spec(None, None), spec("b", "a"), spec(None, None))}
    struct = module.ShapeDtypeStruct((32, 32), np.float32)
    _, result = roofline.roofline(exchange, mesh, **specs)(struct, struct)
    results.append(dataclasses.asdict(result))
  assert results[0] == results[1]
  assert results[0]["ici_bytes"]["b"] > 0


def test_results_add_and_scale():
  for _, roofline in PEERS:
    one = roofline.RooflineResult(flops=3, ici_bytes={"a": 1}, peak_hbm_bytes=7)
    other = roofline.RooflineResult(flops=4, ici_bytes={"b": 2}, peak_hbm_bytes=5)
    assert one + other == roofline.RooflineResult(flops=7, ici_bytes={"a": 1, "b": 2}, peak_hbm_bytes=7)
    assert 2 * one == one * 2 == roofline.RooflineResult(flops=6, ici_bytes={"a": 2}, peak_hbm_bytes=14)


def test_own_rules_and_primitives_without_one(caplog):
  roofline = PEERS[0][1]
  own = jax.core.Primitive("own_of_roofline")
  own.def_abstract_eval(lambda v: v)
  assert roofline.roofline(own.bind)(x)[1].unfused_flops == 0
  assert "own_of_roofline" in caplog.text
  roofline.register_roofline(own)(lambda context, shape, **_: roofline.RooflineResult(flops=5 * shape.size))
  assert roofline.roofline(own.bind)(x)[1].flops == 5 * x.size
  with pytest.raises(TypeError, match="ShapedArray"):
    roofline.RooflineShape.from_aval(3)
