"""GELU with dropout, Adam on many tensors and operations on lists, against their definitions in numpy and float64."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import close, draw, refuses

pytestmark = pytest.mark.wide


# --- GELU with dropout -----------------------------------------------------------------------------------------------


def mask(words, size, rate):
  """The elements kept, from the definition in numpy: 16 bits of threefry2x32 for each."""
  def rotate(x, r):
    return (x << np.uint32(r)) | (x >> np.uint32(32 - r))
  blocks = (size + 3) // 4
  with np.errstate(over="ignore"):
    k0, k1 = np.uint32(words[0]), np.uint32(words[1])
    schedule = [k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA)]
    a, b = np.zeros(blocks, np.uint32) + schedule[0], np.arange(blocks, dtype=np.uint32) + schedule[1]
    for group in range(5):
      for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
        a = a + b
        b = rotate(b, r) ^ a
      a = a + schedule[(group + 1) % 3]
      b = b + schedule[(group + 2) % 3] + np.uint32(group + 1)
  bits = np.stack([a & 0xFFFF, a >> 16, b & 0xFFFF, b >> 16], 1).reshape(-1)[:size]
  return bits < round((1 - rate) * 65536)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("bfloat16", 2e-2), ("float16", 2e-3)])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (64, 130), (2, 3, 1000), (0, 3)], ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_dropout_has_the_values_of_its_definition(dtype, tolerance, shape, wrap, approximate):
  key, rate = jax.random.key(3), 0.3
  x = jnp.asarray(draw(0, *shape)).astype(dtype)
  got = wrap(lambda x, key: kernels.fused_gelu_dropout(x, rate, key, approximate=approximate))(x, key)
  assert str(got.dtype) == dtype and got.shape == shape
  size = int(np.prod(shape))
  kept = mask(np.asarray(jax.random.key_data(key)), size, rate).reshape(shape)
  gelu = np.asarray(oracle.nn.gelu(np.asarray(x.astype("float32")), approximate))
  close(got.astype("float32"), np.where(kept, gelu * 65536 / round(0.7 * 65536), 0), tolerance)
  if size:
    back = wrap(jax.grad(lambda x, key: kernels.fused_gelu_dropout(x, rate, key, approximate=approximate).astype("float32").sum()))(x, key)
    slope = np.vectorize(oracle.grad(lambda v: oracle.nn.gelu(v, approximate)))(np.asarray(x.astype("float32"))) if size < 50 else None
    if slope is not None:
      close(back.astype("float32"), np.where(kept, slope * 65536 / round(0.7 * 65536), 0), 2 * tolerance)
    assert (np.asarray(back.astype("float32"))[~kept] == 0).all()


def test_the_share_dropped_is_the_rate_and_the_mean_stays():
  x = jnp.full((1 << 20,), 3.0)
  gelu = float(jax.nn.gelu(3.0))
  for rate in (0.1, 0.5, 0.9):
    y = np.asarray(kernels.fused_gelu_dropout(x, rate, jax.random.key(1)))
    spread = 5 * (rate * (1 - rate) / y.size) ** 0.5
    assert abs((y == 0).mean() - rate) < spread
    assert abs(y.mean() / gelu - 1) < spread / (1 - rate)
  different = np.asarray(kernels.fused_gelu_dropout(x, 0.5, jax.random.key(2))) != np.asarray(kernels.fused_gelu_dropout(x, 0.5,
      jax.random.key(1)))
  assert abs(different.mean() - 0.5) < 0.01
  raw = kernels.fused_gelu_dropout(x, 0.5, jax.random.PRNGKey(1))
  assert (np.asarray(raw) == np.asarray(kernels.fused_gelu_dropout(x, 0.5, jax.random.key(1)))).all()


def test_ends_of_the_rate_and_no_training():
  x, key = draw(0, 40), jax.random.key(0)
  gelu = oracle.nn.gelu(x)
  close(kernels.fused_gelu_dropout(x, 0.0), gelu)
  close(kernels.fused_gelu_dropout(x, 0.4, training=False), gelu)
  close(jax.grad(lambda x: kernels.fused_gelu_dropout(x, 0.4, training=False).sum())(x), oracle.grad(lambda x: oracle.nn.gelu(x).sum())(x))
  assert not np.asarray(kernels.fused_gelu_dropout(x, 1.0, key)).any()
  assert not np.asarray(jax.grad(lambda x: kernels.fused_gelu_dropout(x, 1.0, key).sum())(x)).any()


def test_dropout_under_transforms():
  x, t, key = draw(0, 4, 30), draw(1, 4, 30), jax.random.key(5)
  kept = mask(np.asarray(jax.random.key_data(key)), 30, 0.25).reshape(30)
  plain = lambda jax: lambda v: jax.numpy.where(kept, jax.nn.gelu(v) * (65536 / 49152), 0.0)
  fused = lambda v: kernels.fused_gelu_dropout(v, 0.25, key)
  # One key for all examples is one mask for all examples.
  close(jax.vmap(fused)(x), plain(oracle)(x))
  keys = jax.random.split(key, 4)
  several = jax.vmap(lambda v, k: kernels.fused_gelu_dropout(v, 0.25, k))(x, keys)
  close(several, jnp.stack([kernels.fused_gelu_dropout(v, 0.25, k) for v, k in zip(x, keys)]))
  close(jax.jvp(fused, (x[0],), (t[0],)), oracle.jvp(plain(oracle), (x[0],), (t[0],)))
  close(jax.vmap(jax.grad(jax.jit(lambda v: (fused(v) ** 2).sum())))(x),
      oracle.vmap(oracle.grad(lambda v: (plain(oracle)(v) ** 2).sum()))(x), 1e-4)
  twice = lambda jax, f: jax.grad(lambda v: (jax.grad(lambda w: (f(w) ** 2).sum())(v) * t[0]).sum())(x[0])
  close(twice(jax, fused), twice(oracle, plain(oracle)), 1e-4)
  close(jax.grad(jax.checkpoint(lambda v: jnp.sin(fused(v)).sum()))(x[0]),
      oracle.grad(lambda v: oracle.numpy.sin(plain(oracle)(v)).sum())(x[0]), 1e-4)


def test_no_mask_is_kept_for_the_backward_pass():
  x, key = draw(0, 64, 64), jax.random.key(0)
  kept = jax.tree.leaves(jax.vjp(lambda x: kernels.fused_gelu_dropout(x, 0.1, key), x)[1])
  assert sum(leaf.size for leaf in kept) == x.size + 2
  assert "= gelu_dropout_grad[" in str(jax.make_jaxpr(jax.grad(lambda x: kernels.fused_gelu_dropout(x, 0.1, key).sum()))(x))


def test_in_place_takes_the_memory_of_its_argument_or_is_refused():
  x, key = jnp.asarray(draw(0, 512, 512)), jax.random.key(0)
  want = np.asarray(kernels.fused_gelu_dropout(x, 0.1, key))
  address = x.unsafe_buffer_pointer()
  y = kernels.fused_gelu_dropout(x, 0.1, key, inplace=True)
  assert x.is_deleted() and y.unsafe_buffer_pointer() == address
  np.testing.assert_array_equal(np.asarray(y) == 0, want == 0)
  close(y, want, 1e-6)
  words = ("inplace=True gives the memory of x", "donate_argnums")
  refuses(lambda: jax.jit(lambda x: kernels.fused_gelu_dropout(x, 0.1, key, inplace=True))(want), *words)
  refuses(lambda: jax.grad(lambda x: kernels.fused_gelu_dropout(x, 0.1, key, inplace=True).sum())(want), *words)


def test_dropout_refuses_by_name():
  x = draw(0, 8)
  refuses(lambda: kernels.fused_gelu_dropout(x, 0.1), "needs a key (argument 'key')")
  refuses(lambda: jax.jit(lambda x: kernels.fused_gelu_dropout(x, 0.1))(x), "needs a key (argument 'key')")
  refuses(lambda: kernels.fused_gelu_dropout(x, 1.5, jax.random.key(0)), "[0, 1] (argument 'rate'), got 1.5")
  refuses(lambda: kernels.fused_gelu_dropout(x, float("nan"), jax.random.key(0)), "(argument 'rate')")
  refuses(lambda: kernels.fused_gelu_dropout(x, 0.1, jax.random.key(0, impl="rbg")), "threefry2x32 key, uint32[2] (argument 'key')")
  refuses(lambda: kernels.fused_gelu_dropout(jnp.arange(8), 0.1, jax.random.key(0)), "floating array (argument 'x'), got int32[8]")


# --- Adam ------------------------------------------------------------------------------------------------------------


def adam(p, g, m, v, step, rate=1e-3, b1=0.9, b2=0.999, eps=1e-8, decay=0.0):
  p, g, m, v = (np.asarray(x, "float64") for x in (p, g, m, v))
  m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
  return p - rate * (m / (1 - b1**step)) / (np.sqrt(v / (1 - b2**step)) + eps) - rate * decay * p, m, v


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("options", [{}, {"learning_rate": 0.1, "b1": 0.5, "b2": 0.9, "eps": 1e-3, "weight_decay": 0.2}],
    ids=["default", "own"])
def test_adam_update_is_adam_on_trees(wrap, options):
  shapes = {"w": (33, 7), "b": (7,), "scale": (), "empty": (0, 3)}
  tree = lambda seed: {name: draw(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
  p, m, v = tree(0), jax.tree.map(jnp.zeros_like, tree(0)), jax.tree.map(jnp.zeros_like, tree(0))
  want = {name: (value, np.zeros(value.shape), np.zeros(value.shape)) for name, value in p.items()}
  update = wrap(lambda p, g, m, v, t: kernels.adam_update(p, g, m, v, t, **options))
  names = {"learning_rate": "rate", "weight_decay": "decay"}
  for step in (1, 2, 3):
    g = tree(10 * step)
    p, m, v = update(p, g, m, v, step)
    want = {name: adam(want[name][0], g[name], *want[name][1:], step, **{names.get(k, k): o for k,
        o in options.items()}) for name in shapes}
    for name in shapes:
      close((p[name], m[name], v[name]), want[name], 2e-5)


def test_adam_keeps_float32_state_of_low_parameters():
  p, g, m, v = jnp.ones(100, "bfloat16"), jnp.asarray(draw(0, 100)).astype("bfloat16"), jnp.zeros(100), jnp.zeros(100)
  (p2,), (m2,), (v2,) = kernels.adam_update([p], [g], [m], [v], 1, learning_rate=0.1)
  assert [str(x.dtype) for x in (p2, m2, v2)] == ["bfloat16", "float32", "float32"]
  want = adam(np.ones(100), np.asarray(g.astype("float32")), np.zeros(100), np.zeros(100), 1, 0.1)
  close(p2.astype("float32"), want[0], 1e-2)
  close((m2, v2), want[1:], 1e-5)


def test_adam_is_one_operation_and_differentiable():
  trees = [[draw(i, 5), draw(i + 1, 2, 3)] for i in range(3)] + [[np.abs(draw(7, 5)), np.abs(draw(8, 2, 3))]]
  text = str(jax.make_jaxpr(lambda *t: kernels.adam_update(*t, 2))(*trees))
  assert text.count("adam_update[") == 1
  slope = jax.grad(lambda r: sum((x ** 2).sum() for x in kernels.adam_update(*trees, 2, learning_rate=r)[0]))(0.1)
  def total(rate):
    return sum((adam(p, g, m, v, 2, rate)[0] ** 2).sum() for p, g, m, v in zip(*trees))
  assert abs(float(slope) - (total(0.1 + 1e-5) - total(0.1 - 1e-5)) / 2e-5) < 1e-3 * abs(float(slope))


def test_adam_refuses_by_name():
  x = draw(0, 3)
  refuses(lambda: kernels.adam_update([x], [x[:2]], [x], [x], 1), "(argument 'gradients', number 0), got float32[2]")
  refuses(lambda: kernels.adam_update([x], [x], [x[:2]], [x], 1), "adam_update: expected float32[3] (argument 'means'), got float32[2]")
  refuses(lambda: kernels.adam_update([jnp.arange(3)], [x], [x], [x], 1), "floating arrays (argument 'parameters')")
  refuses(lambda: kernels.adam_update([x], [x], [x], [x], x), "scalar (argument 'step')")
  refuses(lambda: kernels.adam_update([x], [x, x], [x], [x], 1))
  assert kernels.adam_update([], [], [], [], 1) == ([], [], [])


# --- lists of tensors ------------------------------------------------------------------------------------------------

WEIGHT, BIAS = draw(20, 12), draw(21, 12)
OPERATIONS = {
    "layer_norm": ({"weight": WEIGHT, "bias": BIAS, "epsilon": 1e-3}, lambda x: kernels.layer_norm(x, WEIGHT, BIAS, epsilon=1e-3)),
    "rms_norm": ({"weight": WEIGHT}, lambda x: kernels.rms_norm(x, WEIGHT)),
    "softmax": ({}, kernels.softmax),
    "gelu": ({}, lambda x: jax.nn.gelu(x)),
    "matmul": ({"b": draw(22, 12, 5)}, lambda x: x @ draw(22, 12, 5)),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_batch_operations_are_the_operation_of_each(name, parallel, wrap):
  parameters, one = OPERATIONS[name]
  inputs = [jnp.asarray(draw(i, *shape)) for i, shape in enumerate([(3, 12), (12,), (2, 4, 12), (5000, 12), (0, 12)])]
  results = wrap(lambda xs: kernels.batch_operations(name, xs, parameters, parallel))(inputs)
  assert isinstance(results, list)
  for x, got in zip(inputs, results, strict=True):
    close(got, one(x), 1e-5)


def test_small_inputs_go_together_and_sequences_apart():
  inputs = [draw(i, 3, 12) for i in range(4)]
  text = lambda parallel: str(jax.make_jaxpr(lambda xs: kernels.batch_operations("softmax", xs, {}, parallel))(inputs))
  assert text(True).count("= softmax ") == 1 and text(False).count("= softmax ") == 4
  assert text(False).count("optimization_barrier") == 3
  mixed = [draw(0, 3, 12), jnp.ones((3, 12), "bfloat16"), draw(1, 2, 7)]
  assert [str(x.dtype) for x in kernels.batch_operations("softmax", mixed)] == ["float32", "bfloat16", "float32"]
  assert kernels.batch_operations("softmax", []) == []


def test_batch_operations_refuse_by_name():
  x = draw(0, 3, 12)
  refuses(lambda: kernels.batch_operations("conv",
      [x]), "'layer_norm', 'rms_norm', 'softmax', 'gelu', 'matmul' (argument 'operation_type'), got 'conv'")
  refuses(lambda: kernels.batch_operations("softmax", [x], {"weight": WEIGHT}),
      "'softmax' takes no parameters (argument 'parameters'), got 'weight'")
  refuses(lambda: kernels.batch_operations("rms_norm", [x]), "'rms_norm' needs 'weight' (argument 'parameters')")
  refuses(lambda: kernels.batch_operations("gelu", [jnp.arange(3)]), "floating arrays of rank 1 or more (argument 'inputs')")
