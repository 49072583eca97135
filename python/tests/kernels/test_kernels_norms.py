"""rms_norm, softmax, cross_entropy and fast_layer_norm against float64, jax's own derivatives, and under transforms."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import close

pytestmark = pytest.mark.wide

TOLERANCE = {"float32": 2e-5, "bfloat16": 3e-2, "float16": 4e-3}
SHAPES = [(1,), (7,), (3, 1), (4, 33), (2, 3, 130), (65, 257), (3, 5000), (0, 5)]


def draw(seed, *shape, scale=1.0):
  return (scale * np.random.RandomState(seed).randn(*shape)).astype("float32")


def rms_norm(x, scale, epsilon=1e-6):
  wide = x.astype("float32") if x.dtype != "float64" else x
  return (wide / oracle.numpy.sqrt((wide * wide).mean(-1, keepdims=True) + epsilon) * scale.astype(wide.dtype)).astype(x.dtype)


def softmax(x, axis=-1):
  wide = x.astype("float32") if x.dtype != "float64" else x
  return oracle.nn.softmax(wide, axis).astype(x.dtype)


def cross_entropy(logits, labels, label_smoothing=0.0, ignore_index=-100):
  jnp = oracle.numpy
  wide = logits.astype("float32") if logits.dtype != "float64" else logits
  logs = oracle.nn.log_softmax(wide)
  kept = labels != ignore_index
  picked = jnp.take_along_axis(logs, jnp.where(kept, labels, 0)[..., None], axis=-1)[..., 0]
  loss = -(1 - label_smoothing) * picked - label_smoothing * logs.mean(-1)
  return jnp.where(kept, loss, 0.0)


def in_double(function, *arguments):
  """A function of the peer in float64."""
  with oracle.enable_x64():
    wide = [np.asarray(a).astype("float64") if np.asarray(a).dtype.kind not in "iub" else np.asarray(a) for a in arguments]
    return oracle.tree.map(np.asarray, function(*(oracle.numpy.asarray(a) for a in wide)))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_values_are_those_of_float64(dtype, shape, wrap):
  x, scale = jnp.asarray(draw(0, *shape, scale=3)).astype(dtype), jnp.asarray(draw(1, shape[-1])).astype(dtype)
  labels = np.random.RandomState(2).randint(0, shape[-1], shape[:-1]).astype("int32")
  plain = [np.asarray(a.astype("float32")) for a in (x, scale)]
  got = wrap(kernels.rms_norm)(x, scale)
  assert str(got.dtype) == dtype
  close(got, in_double(rms_norm, *plain), 4 * TOLERANCE[dtype])
  got = wrap(kernels.softmax)(x)
  assert str(got.dtype) == dtype
  close(got, in_double(softmax, plain[0]), TOLERANCE[dtype])
  got = wrap(kernels.cross_entropy)(x, labels)
  assert str(got.dtype) == "float32"
  close(got, in_double(cross_entropy, plain[0], labels), 2e-5)


def test_float64_stays_float64():
  with jax.enable_x64(True):
    x, scale, labels = draw(0, 5, 40).astype("float64"), draw(1, 40).astype("float64"), np.arange(5)
    for got, want in ((kernels.rms_norm(x, scale), in_double(rms_norm, x, scale)), (kernels.softmax(x), in_double(softmax, x)),
                      (kernels.cross_entropy(x, labels), in_double(cross_entropy, x, labels))):
      assert str(got.dtype) == "float64"
      close(got, want, 1e-13)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_gradients_are_those_of_float64(dtype, wrap):
  x, scale, weights = draw(0, 6, 5, 40), draw(1, 40), draw(2, 6, 5, 40)
  labels = np.random.RandomState(3).randint(0, 40, (6, 5)).astype("int32")
  low = [jnp.asarray(a).astype(dtype) for a in (x, scale)]
  plain = [np.asarray(a.astype("float32")) for a in low]

  def weigh(function):
    return lambda *args: (function(*args).astype("float32" if function.__module__.startswith("capibara") else "float64") * weights).sum()

  got = wrap(jax.grad(weigh(kernels.rms_norm), (0, 1)))(*low)
  close(got, in_double(oracle.grad(weigh(rms_norm), (0, 1)), *plain), 20 * TOLERANCE[dtype])
  got = wrap(jax.grad(weigh(kernels.softmax)))(low[0])
  close(got, in_double(oracle.grad(weigh(softmax)), plain[0]), 4 * TOLERANCE[dtype])
  for options in ({}, {"label_smoothing": 0.1}, {"ignore_index": 3}, {"label_smoothing": 0.2, "ignore_index": 7}):
    rows = weights[..., 0]
    got = wrap(jax.grad(lambda x: (kernels.cross_entropy(x, labels, **options) * rows).sum()))(low[0])
    want = in_double(oracle.grad(lambda x: (cross_entropy(x, labels, **options) * rows).sum()), plain[0])
    assert str(got.dtype) == dtype
    close(got, want, 4 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("columns", [1, 3, 4, 15, 16, 17, 64, 131])
def test_softmax_of_rows_with_infinities(columns, dtype):
  """Masked elements are exactly 0 and do not affect the others; a row without a finite maximum is NaN, and no other row is."""
  x = draw(3, 6, columns, scale=20)
  x[1, ::2] = x[2, :] = -np.inf
  x[3, 0], x[4, -1] = np.inf, np.nan
  x[5, -1] = 3e38 if dtype == "float32" else 6e4
  x = jnp.asarray(x, dtype)
  wide = np.asarray(x.astype("float32"), "float64")
  with np.errstate(all="ignore"):
    powers = np.exp(wide - wide.max(-1, keepdims=True))
    want = powers / powers.sum(-1, keepdims=True)
  for got in (kernels.softmax(x), jax.jit(kernels.softmax)(x)):
    got = np.asarray(got.astype("float32"))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=1e-7)
    assert columns == 1 or (got[1, ::2] == 0).all()


@pytest.mark.parametrize("name", ["rms_norm", "softmax", "cross_entropy"])
def test_gradients_are_those_of_finite_differences(name):
  with jax.enable_x64(True):
    x, direction, scale = (draw(i, *s).astype("float64") for i, s in enumerate([(3, 9), (3, 9), (9,)]))
    weights = draw(5, 3, 9).astype("float64")
    function = {"rms_norm": lambda x: kernels.rms_norm(x, scale) * weights, "softmax": lambda x: kernels.softmax(x) * weights,
                "cross_entropy": lambda x: kernels.cross_entropy(x, np.array([0, 8, 4]), label_smoothing=0.1) * weights[:, 0]}[name]
    step = 1e-6
    slope = (function(x + step * direction).sum() - function(x - step * direction).sum()) / (2 * step)
    close((jax.grad(lambda x: function(x).sum())(x) * direction).sum(), slope, 1e-7)


X, SCALE, LABELS, ROWS = draw(0, 4, 6, 20), draw(1, 20), np.random.RandomState(4).randint(0, 20, (4, 6)).astype("int32"), draw(5, 4, 6, 20)


class Peer:
  rms_norm, softmax, cross_entropy = staticmethod(rms_norm), staticmethod(softmax), staticmethod(cross_entropy)


TRANSFORMS = {
    "vmap": lambda jax, k: (jax.vmap(k.rms_norm, (1, None))(X, SCALE), jax.vmap(k.softmax, 1)(X), jax.vmap(k.cross_entropy, 1)(X, LABELS)),
    "vmap over scales": lambda jax, k: jax.vmap(k.rms_norm)(X, draw(6, 4, 20)),
    "vmap over labels": lambda jax, k: jax.vmap(k.cross_entropy, (None, 0))(X[0], LABELS),
    "softmax along axes": lambda jax, k: (k.softmax(X, axis=0), k.softmax(X, axis=1), k.softmax(X, axis=-2)),
    "jvp": lambda jax, k: (jax.jvp(k.rms_norm, (X, SCALE), (ROWS, SCALE)), jax.jvp(k.softmax, (X,), (ROWS,)),
                           jax.jvp(lambda x: k.cross_entropy(x, LABELS), (X,), (ROWS,))),
    "vmap of grad of jit": lambda jax, k: (
        jax.vmap(jax.grad(jax.jit(lambda x, w: (k.rms_norm(x, SCALE) * w).sum())))(X, ROWS),
        jax.vmap(jax.grad(jax.jit(lambda x, w: (k.softmax(x) * w).sum())))(X, ROWS),
        jax.vmap(jax.grad(jax.jit(lambda x, i: k.cross_entropy(x, i).sum())))(X, LABELS)),
    "grad of grad": lambda jax, k: (
        jax.grad(lambda x: (jax.grad(lambda v: (k.rms_norm(v, SCALE) ** 3).sum())(x) * ROWS).sum())(X),
        jax.grad(lambda x: (jax.grad(lambda v: (k.softmax(v) ** 2).sum())(x) * ROWS).sum())(X),
        jax.grad(lambda x: (jax.grad(lambda v: (k.cross_entropy(v, LABELS) ** 2).sum())(x) * ROWS).sum())(X)),
    "hessian by jacfwd of jacrev": lambda jax, k: jax.jacfwd(jax.jacrev(lambda x: k.cross_entropy(x, LABELS[0, 0])))(X[0, 0]),
    "checkpoint": lambda jax, k: jax.grad(jax.checkpoint(
        lambda x: k.cross_entropy(k.softmax(k.rms_norm(x, SCALE)) * 5, LABELS).sum()))(X),
    "scan": lambda jax, k: jax.grad(lambda s: jax.lax.scan(lambda c, x: (k.rms_norm(c + k.softmax(x), s), None), X[0], X)[0].sum())(SCALE),
    "epsilon": lambda jax, k: k.rms_norm(X, SCALE, epsilon=0.5),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_under_transforms(name):
  close(TRANSFORMS[name](jax, kernels), TRANSFORMS[name](oracle, Peer), 2e-4)


def test_each_is_one_operation_forwards_and_backwards():
  def loss(x, scale):
    return kernels.cross_entropy(kernels.softmax(kernels.rms_norm(x, scale)), LABELS).sum()
  text = str(jax.make_jaxpr(jax.grad(loss, (0, 1)))(X, SCALE))
  for name in ("rms_norm[", "rms_norm_grad ", "softmax ", "softmax_grad ", "cross_entropy[", "cross_entropy_grad["):
    assert f"= {name}" in text, text
  assert "composed_tangent" not in text


def test_cross_entropy_keeps_no_array_of_probabilities():
  """Besides logits and gradient, the compiled loss and gradient need far less memory than one of them."""
  logits, labels = jnp.zeros((256, 4096)), jnp.zeros(256, "int32")
  forward = jax.jit(kernels.cross_entropy).lower(logits, labels).compile().memory_analysis()
  assert forward.temp_size_in_bytes < logits.nbytes / 50
  gradient = jax.jit(jax.grad(lambda x: kernels.cross_entropy(x, labels).sum())).lower(logits).compile().memory_analysis()
  assert gradient.temp_size_in_bytes < logits.nbytes / 50
  kept = str(jax.make_jaxpr(lambda x: jax.vjp(lambda v: kernels.cross_entropy(v, labels), x)[1])(logits))
  assert "exp" not in kept


def test_labels_beyond_the_classes_are_nan_and_ignored_ones_zero():
  x, labels = draw(0, 5, 4), np.array([1, -1, 4, 2, -100], "int32")
  loss, gradient = kernels.cross_entropy(x, labels), jax.grad(lambda x: kernels.cross_entropy(x, labels).sum())(x)
  assert np.isnan(np.asarray(loss)).tolist() == [False, True, True, False, False]
  assert np.isnan(np.asarray(gradient)).all(1).tolist() == [False, True, True, False, False]
  assert float(loss[4]) == 0 and not np.asarray(gradient[4]).any()
  # An ignored row has no effect even if its logits are NaN.
  x[4] = np.nan
  assert float(kernels.cross_entropy(x, labels)[4]) == 0
  assert not np.asarray(jax.grad(lambda x: kernels.cross_entropy(x, labels).sum())(x)[4]).any()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int32"])
def test_labels_of_any_integer_type(dtype):
  x, labels = draw(0, 5, 4), np.array([1, 0, 3, 2, 3])
  close(kernels.cross_entropy(x, labels.astype(dtype)), cross_entropy(x, labels), 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("columns", [4096, 4100])  # rows of whole cache lines, and others
def test_softmax_of_arrays_larger_than_caches(columns, dtype):
  rows = 18_000_000 // columns // (1 if dtype == "bfloat16" else 2) // 2
  x, slope = (jnp.asarray(draw(seed, rows, columns, scale=3)).astype(dtype) for seed in (0, 1))
  y, pull = jax.vjp(jax.jit(kernels.softmax), x)
  wide = np.asarray(x.astype("float32")).astype("float64")
  powers = np.exp(wide - wide.max(-1, keepdims=True))
  want = powers / powers.sum(-1, keepdims=True)
  close(y, want, TOLERANCE[dtype])
  shares, wide_slope = (np.asarray(a.astype("float32")).astype("float64") for a in (y, slope))
  close(jax.jit(pull)(slope)[0], shares * (wide_slope - (wide_slope * shares).sum(-1, keepdims=True)), TOLERANCE[dtype])


def test_hard_rows():
  inf, nan = np.inf, np.nan
  rows = np.array([[-inf, -inf, -inf], [inf, 0, 0], [1e30, -1e30, 0], [nan, 0, 1], [-inf, 0, 0], [-3e38, 3e38, 0]], "float32")
  for wrap in (lambda f: f, jax.jit):
    np.testing.assert_allclose(np.asarray(wrap(kernels.softmax)(rows)), np.asarray(oracle.nn.softmax(rows)), rtol=1e-6)
    labels = np.full(6, 1)
    want = -np.asarray(oracle.nn.log_softmax(rows))[:, 1]
    np.testing.assert_allclose(np.asarray(wrap(kernels.cross_entropy)(rows, labels)), want, rtol=1e-6)


@pytest.mark.parametrize("memory_efficient", [False, True])
def test_fast_layer_norm_is_layer_norm(memory_efficient):
  bias = draw(7, 20)
  norm = lambda x, *rest: kernels.fast_layer_norm(x, *rest, memory_efficient=memory_efficient)
  close(norm(X, SCALE, bias), kernels.layer_norm(X, SCALE, bias), 1e-6)
  close(norm(X), kernels.layer_norm(X, jnp.ones(20), jnp.zeros(20)), 1e-6)
  close(norm(X, SCALE), kernels.layer_norm(X, SCALE, jnp.zeros(20)), 1e-6)
  loss = lambda norm: lambda *args: (norm(*args) * ROWS).sum()
  close(jax.grad(loss(norm), (0, 1, 2))(X, SCALE, bias), jax.grad(loss(kernels.layer_norm), (0, 1, 2))(X, SCALE, bias), 1e-5)
  # Residuals of the backward pass: the operands, or also the statistics of the rows.
  kept = jax.tree.leaves(jax.vjp(norm, X, SCALE, bias)[1])
  assert any(leaf.shape == (4, 6) for leaf in kept) is not memory_efficient


@pytest.mark.parametrize("call, words", [
    (lambda: kernels.rms_norm(X, SCALE[:3]), "rms_norm: expected float32[20] (argument 'scale'), got float32[3]"),
    (lambda: kernels.rms_norm(jnp.float32(1),
        SCALE), "rms_norm: expected a floating array of rank 1 or more (argument 'x'), got float32[]"),
    (lambda: kernels.softmax(jnp.arange(3)), "softmax: expected a floating array of rank 1 or more (argument 'x'), got int32[3]"),
    (lambda: kernels.softmax(X, axis=3), "softmax: axis 3 is out of bounds for float32[4,6,20] (argument 'axis')"),
    (lambda: kernels.cross_entropy(X, LABELS[0]), "(argument 'labels'), one class for each row of logits float32[4,6,20], got int32[6]"),
    (lambda: kernels.cross_entropy(X, LABELS * 1.0), "cross_entropy: expected integers of shape int32[4,6] (argument 'labels')"),
    (lambda: kernels.cross_entropy(X[..., :0], LABELS), "cross_entropy: expected at least one class (argument 'logits')"),
    (lambda: kernels.cross_entropy(X, LABELS, label_smoothing=1.0),
        "cross_entropy: expected a number in [0, 1) (argument 'label_smoothing'), got 1"),
    (lambda: kernels.fast_layer_norm(jnp.arange(3)), "fast_layer_norm: expected a floating array of rank 1 or more"),
])
def test_wrong_arguments_are_named(call, words):
  with pytest.raises((TypeError, ValueError)) as caught:
    call()
  assert words in str(caught.value), caught.value
