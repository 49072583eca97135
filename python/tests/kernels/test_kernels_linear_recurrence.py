"""The linear recurrence of capibara.kernels against its definition, its derivatives, and associative_scan based on it."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import draw

pytestmark = pytest.mark.wide

TOLERANCE = {"bfloat16": 4e-2, "float16": 4e-3}


def close(got, want, tolerance):
  got, want = jax.tree.leaves(got), oracle.tree.leaves(want)
  assert len(got) == len(want)
  for one, other in zip(got, want):
    one, other = np.asarray(one, "float64"), np.asarray(other, "float64")
    assert one.shape == other.shape
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * max(1.0, np.abs(other).max(initial=0)))


# ---- the linear recurrence -------------------------------------------------------------------------------------------


def recurrence_definition(a, b, initial=None, axis=0, reverse=False):
  a, b = np.moveaxis(np.asarray(a), axis, 0), np.moveaxis(np.asarray(b), axis, 0)
  wide = "complex128" if np.iscomplexobj(a) else "float64"
  h = np.zeros(a.shape[1:], wide) if initial is None else np.asarray(initial).astype(wide)
  out = np.zeros(a.shape, wide)
  for t in range(len(a))[::-1] if reverse else range(len(a)):
    h = a[t].astype(wide) * h + b[t]
    out[t] = h
  return np.moveaxis(out, 0, axis)


RECURRENCES = [((1,), 0), ((7,), 0), ((5, 3), 0), ((3, 200), 1), ((2, 9, 300), 1), ((11, 40), 1), ((300, 2, 5), 0), ((4, 3, 2), -1)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("shape, axis", RECURRENCES, ids=str)
def test_linear_recurrence_is_its_definition(shape, axis, start, reverse):
  a, b = 0.5 * draw(0, *shape), draw(1, *shape)
  initial = draw(2, *np.delete(shape, axis)) if start else None
  want = recurrence_definition(a, b, initial, axis, reverse)
  close(kernels.linear_recurrence(a, b, initial, axis=axis, reverse=reverse), want, 1e-5)
  close(jax.jit(lambda a, b: kernels.linear_recurrence(a, b, initial, axis=axis, reverse=reverse))(a, b), want, 1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_linear_recurrence_of_other_dtypes(dtype):
  a, b = 0.5 * draw(0, 20, 40), draw(1, 20, 40)
  if dtype == "complex64":
    a, b = a + 0.3j * draw(2, 20, 40), b + 1j * draw(3, 20, 40)
  a, b = jnp.asarray(a.astype("complex64" if "complex" in dtype else "float32")).astype(dtype), jnp.asarray(b).astype(dtype)
  got = kernels.linear_recurrence(a, b)
  assert str(got.dtype) == dtype
  as_is = lambda x: np.asarray(x) if dtype == "complex64" else np.asarray(x.astype("float32"))
  want = recurrence_definition(as_is(a), as_is(b))
  np.testing.assert_allclose(as_is(got), want, rtol=TOLERANCE.get(dtype, 1e-5), atol=TOLERANCE.get(dtype, 1e-5))


RECURRENCE_TRANSFORMS = {
    "grad": lambda jax, f, a, b, h: jax.grad(lambda *x: jax.numpy.sin(f(*x)).sum(), (0, 1, 2))(a, b, h),
    "jvp": lambda jax, f, a, b, h: jax.jvp(f, (a, b, h), (b, a, h)),
    "vmap of grad of jit": lambda jax, f, a, b, h: jax.vmap(
        jax.grad(jax.jit(lambda *x: jax.numpy.sin(f(*x)).sum()), (0, 1)), (0, None, None))(np.stack([a, b]), b, h),
    "second derivative": lambda jax, f, a, b, h: jax.grad(
        lambda x: (jax.grad(lambda y: jax.numpy.sin(f(y, b, h)).sum())(x) * b).sum())(a),
    "third derivative": lambda jax, f, a, b, h: jax.jvp(
        lambda z: jax.grad(lambda x: (jax.grad(lambda y: (f(y, b, h) ** 2).sum())(x) * b).sum())(z), (a,), (b,)),
    "jacrev of the start": lambda jax, f, a, b, h: jax.jacrev(lambda x: f(a, b, x))(h),
    "checkpoint": lambda jax, f, a, b, h: jax.grad(jax.checkpoint(lambda x: jax.numpy.sin(f(x, b, h)).sum()))(a),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", RECURRENCE_TRANSFORMS)
def test_linear_recurrence_under_transforms(name, reverse):
  def plain(a, b, h):
    return oracle.lax.scan(lambda h, x: (x[0] * h + x[1],) * 2, h, (a, b), reverse=reverse)[1]

  a, b, h = 0.5 * draw(0, 12, 3), draw(1, 12, 3), draw(2, 3)
  got = RECURRENCE_TRANSFORMS[name](jax, lambda a, b, h: kernels.linear_recurrence(a, b, h, reverse=reverse), a, b, h)
  close(got, RECURRENCE_TRANSFORMS[name](oracle, plain, a, b, h), 1e-4)


# ---- lax.associative_scan(tpu_optimized=True) ------------------------------------------------------------------------

COMBINES = {
    "as written": (lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), True),
    "operands turned": (lambda x, y: (y[0] * x[0], y[1] + x[1] * y[0]), True),
    "under jit": (jax.jit(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1])), True),
    "values first": (lambda x, y: (y[1] * x[0] + y[0], x[1] * y[1]), True),
    "by names": (lambda x, y: {"a": x["a"] * y["a"], "b": y["a"] * x["b"] + y["b"]}, True),
    "the other side": (lambda x, y: (x[0] * y[0], x[0] * y[1] + x[1]), False),
    "no product": (lambda x, y: (x[0] + y[0], x[1] + y[1]), False),
    "another term": (lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1] + 0.0 * x[1]), False),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", COMBINES)
def test_associative_scan_knows_linear_recurrences(name, reverse):
  combine, known = COMBINES[name]
  a, b = 0.5 * draw(0, 4, 37, 3), draw(1, 4, 37, 3)
  pair = {"a": a, "b": b} if name == "by names" else (b, a) if name == "values first" else (a, b)
  run = lambda pair, fast: jax.lax.associative_scan(combine, pair, reverse=reverse, axis=1, tpu_optimized=fast)
  got, want = run(pair, True), run(pair, False)
  assert jax.tree.structure(got) == jax.tree.structure(want)
  close(got, want, 1e-5)
  text = str(jax.make_jaxpr(lambda pair: run(pair, True))(pair))
  assert ("linear_recurrence" in text) == known
  if not known:
    assert text == str(jax.make_jaxpr(lambda pair: run(pair, False))(pair))


def test_associative_scan_of_other_pairs_is_left_alone():
  combine = lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1])
  for pair in [(np.arange(4), np.arange(4)), (draw(0, 1, 2), draw(1, 1, 2)), (draw(0, 5, 1), draw(1, 5, 3))]:
    close(jax.lax.associative_scan(combine, pair, tpu_optimized=True), oracle.lax.associative_scan(combine, pair), 1e-5)
