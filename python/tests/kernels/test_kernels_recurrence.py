"""Recurrences of capibara.kernels against their definitions in float64, and against jax's derivatives of a plain loop."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import draw

pytestmark = pytest.mark.wide

TOLERANCE = {"float32": 2e-5, "bfloat16": 4e-2, "float16": 4e-3}


def close(got, want, tolerance):
  got, want = jax.tree.leaves(got), oracle.tree.leaves(want)
  assert len(got) == len(want)
  for one, other in zip(got, want):
    one, other = np.asarray(one, "float64"), np.asarray(other, "float64")
    assert one.shape == other.shape
    size = max(1.0, np.abs(other[np.isfinite(other)]).max(initial=0))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * size)


# ---- definitions, in float64 -----------------------------------------------------------------------------------------


def softplus(x):
  return np.logaddexp(x, 0)


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def scan_definition(u, delta, A, B, C, D=None, z=None, delta_bias=None, *, delta_softplus=False, initial_state=None,
                    segment_ids=None):
  """The selective scan step by step; leading axes are batches."""
  wide = lambda x: None if x is None else np.asarray(x).astype("float64")
  u, delta, A, B, C, D, z, delta_bias, state = map(wide, (u, delta, A, B, C, D, z, delta_bias, initial_state))
  step = delta + (0 if delta_bias is None else delta_bias)
  step = softplus(step) if delta_softplus else step
  h = np.zeros(u.shape[:-2] + A.shape) if state is None else state
  y = np.zeros(u.shape)
  for t in range(u.shape[-2]):
    if segment_ids is not None and t > 0:
      changed = segment_ids[..., t] != segment_ids[..., t - 1]
      h = np.where(changed[..., None, None], 0, h)
    h = np.exp(step[..., t, :, None] * A) * h + (step[..., t, :] * u[..., t, :])[..., None] * B[..., t, None, :]
    y[..., t, :] = (h * C[..., t, None, :]).sum(-1)
  y = y + (0 if D is None else D * u)
  return y * (1 if z is None else z * sigmoid(z)), h


def ssd_definition(x, dt, A, B, C, D=None, z=None, dt_bias=None, *, dt_softplus=False, initial_state=None, segment_ids=None):
  """The definition as a selective scan of each head."""
  x, dt, B, C = (np.asarray(a).astype("float64") for a in (x, dt, B, C))
  heads, dim, repeats = x.shape[-2], x.shape[-1], x.shape[-2] // B.shape[-2]
  ys, last = [], []
  for h in range(heads):
    y, state = scan_definition(
        x[..., h, :], np.repeat(dt[..., h : h + 1], dim, -1), np.full((dim, B.shape[-1]), A[h]), B[..., h // repeats, :],
        C[..., h // repeats, :], None if D is None else np.full(dim, D[h]), None if z is None else z[..., h, :],
        None if dt_bias is None else np.full(dim, dt_bias[h]), delta_softplus=dt_softplus,
        initial_state=None if initial_state is None else initial_state[..., h, :, :], segment_ids=segment_ids)
    ys.append(y)
    last.append(state)
  return np.stack(ys, -2), np.stack(last, -3)


# ---- operands --------------------------------------------------------------------------------------------------------


def scan_operands(shape, state, options, seed=0):
  """(positional arguments, keywords); `options` names the optional ones that are passed."""
  *batch, length, dim = shape
  rows = lambda k: draw(seed + k, *shape)
  args = dict(u=rows(0), delta=0.5 * rows(1) if "softplus" in options else 0.1 * np.abs(rows(1)),
              A=-np.exp(0.5 * draw(seed + 2, dim, state)), B=draw(seed + 3, *batch, length, state),
              C=draw(seed + 4, *batch, length, state))
  if "D" in options:
    args["D"] = draw(seed + 5, dim)
  if "z" in options:
    args["z"] = rows(6)
  if "bias" in options:
    args["delta_bias"] = 0.1 * np.abs(draw(seed + 7, dim))
  if "initial" in options:
    args["initial_state"] = draw(seed + 8, *batch, dim, state)
  static = {"delta_softplus": True} if "softplus" in options else {}
  if "segments" in options:
    static["segment_ids"] = np.cumsum(np.random.RandomState(seed + 9).rand(*batch, length) < 0.3, -1).astype("int32")
  return args, static


def ssd_operands(shape, groups, state, options, seed=0):
  *batch, length, heads, dim = shape
  args = dict(x=draw(seed, *shape), dt=draw(seed + 1, *batch, length, heads), A=-np.exp(0.5 * draw(seed + 2, heads)),
              B=draw(seed + 3, *batch, length, groups, state), C=draw(seed + 4, *batch, length, groups, state))
  if "softplus" not in options:
    args["dt"] = 0.1 * np.abs(args["dt"])
  if "D" in options:
    args["D"] = draw(seed + 5, heads)
  if "z" in options:
    args["z"] = draw(seed + 6, *shape)
  if "bias" in options:
    args["dt_bias"] = 0.1 * np.abs(draw(seed + 7, heads))
  if "initial" in options:
    args["initial_state"] = draw(seed + 8, *batch, heads, dim, state)
  static = {"dt_softplus": True} if "softplus" in options else {}
  if "segments" in options:
    static["segment_ids"] = np.cumsum(np.random.RandomState(seed + 9).rand(*batch, length) < 0.3, -1).astype("int32")
  return args, static


ALL = ("D", "z", "bias", "initial", "softplus", "segments")
OPTIONS = [(), *((one,) for one in ALL), ("D", "z", "softplus", "bias"), ("z", "segments", "initial"), ALL]
# Ragged, tiny, a length of one, several chunks, dims that do not fill a vector, and several blocks of channels.
SCAN_SHAPES = [((1, 1), 1), ((3, 2), 5), ((2, 7, 5), 3), ((64, 16), 16), ((2, 130, 17), 16), ((1, 65, 150), 4), ((2, 2, 9, 33), 8)]
SSD_SHAPES = [((1, 1, 1), 1, 1), ((5, 2, 3), 1, 4), ((2, 70, 4, 8), 2, 16), ((2, 3, 9, 2, 5), 2, 3), ((130, 3, 16), 1, 24)]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("shape, state", SCAN_SHAPES, ids=str)
def test_selective_scan_is_its_definition(shape, state, options):
  args, static = scan_operands(shape, state, options)
  want = scan_definition(**args, **static)
  close(kernels.selective_scan(**args, **static, return_last_state=True), want, 1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("shape, groups, state", SSD_SHAPES, ids=str)
def test_ssd_is_its_definition(shape, groups, state, options):
  args, static = ssd_operands(shape, groups, state, options)
  want = ssd_definition(**args, **static)
  close(kernels.ssd(**args, **static, return_last_state=True), want, 2e-5)


# Chunks longer than a kernel's pieces, columns in several tasks and in partial vectors, states in many tiles.
@pytest.mark.parametrize("chunk", [1, 13, 100, 200])
@pytest.mark.parametrize("shape, groups, state", [((170, 1, 70), 1, 37), ((2, 150, 6, 13), 3, 128)], ids=str)
def test_ssd_by_chunks_of_any_size(shape, groups, state, chunk):
  args, static = ssd_operands(shape, groups, state, ALL)
  want = ssd_definition(**args, **static)
  close(kernels.ssd(**args, **static, chunk_size=chunk, return_last_state=True), want, 5e-5)


# ---- dtypes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_keep_a_wide_state(dtype, wrap):
  args, static = scan_operands((2, 130, 17), 16, ALL)
  narrow = {k: jnp.asarray(v).astype(dtype if k in ("u", "delta", "B", "C", "z") else "float32") for k, v in args.items()}
  y, last = wrap(lambda given: kernels.selective_scan(**given, **static, return_last_state=True))(narrow)
  assert (str(y.dtype), str(last.dtype)) == (dtype, "float32")
  rounded = {k: np.asarray(v.astype("float32")) for k, v in narrow.items()}
  want = scan_definition(**rounded, **static)
  close(last, want[1], 1e-5)  # nothing is lost beyond the rounding of the operands
  close(y, want[0], TOLERANCE[dtype])

  args, static = ssd_operands((2, 70, 4, 8), 2, 16, ALL)
  narrow = {k: jnp.asarray(v).astype(dtype if k in ("x", "dt", "B", "C", "z") else "float32") for k, v in args.items()}
  y, last = wrap(lambda given: kernels.ssd(**given, **static, return_last_state=True))(narrow)
  assert (str(y.dtype), str(last.dtype)) == (dtype, "float32")
  rounded = {k: np.asarray(v.astype("float32")) for k, v in narrow.items()}
  want = ssd_definition(**rounded, **static)
  close((y, last), want, TOLERANCE[dtype])


def test_wide_floats_are_exact():
  with jax.enable_x64(True):
    wide = lambda args: {k: jnp.asarray(v.astype("float64")) for k, v in args.items()}
    args, static = scan_operands((2, 130, 17), 16, ALL)
    close(kernels.selective_scan(**wide(args), **static, return_last_state=True), scan_definition(**args, **static), 1e-13)
    args, static = ssd_operands((2, 70, 4, 8), 2, 16, ALL)
    close(kernels.ssd(**wide(args), **static, return_last_state=True), ssd_definition(**args, **static), 1e-12)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def scan_plain(jax):
  """The definition as a jax program, differentiated by jax."""
  jnp = jax.numpy

  def run(u, delta, A, B, C, D=None, z=None, delta_bias=None, *, delta_softplus=False, initial_state=None, segment_ids=None):
    step = delta + (0 if delta_bias is None else delta_bias)
    step = jax.nn.softplus(step) if delta_softplus else step
    state = jnp.zeros(u.shape[:-2] + A.shape, A.dtype) if initial_state is None else initial_state
    reset = jnp.zeros(u.shape[:-1], bool)
    if segment_ids is not None:
      reset = reset.at[..., 1:].set(jnp.asarray(segment_ids)[..., 1:] != jnp.asarray(segment_ids)[..., :-1])

    def one(h, slices):
      u, step, B, C, reset = slices
      h = jnp.where(reset[..., None, None], 0, h)
      h = jnp.exp(step[..., None] * A) * h + (step * u)[..., None] * B[..., None, :]
      return h, (h * C[..., None, :]).sum(-1)

    front = lambda x, kept: jnp.moveaxis(x, x.ndim - 1 - kept, 0)
    last, y = jax.lax.scan(one, state, (front(u, 1), front(step, 1), front(B, 1), front(C, 1), front(reset, 0)))
    y = jnp.moveaxis(y, 0, u.ndim - 2)
    y = y + (0 if D is None else D * u)
    return y * (1 if z is None else jax.nn.silu(z)), last
  return run


def ssd_plain(jax):
  jnp = jax.numpy

  def run(x, dt, A, B, C, D=None, z=None, dt_bias=None, *, dt_softplus=False, initial_state=None, segment_ids=None):
    heads, dim = x.shape[-2:]
    wide = lambda v: None if v is None else jnp.repeat(v, dim, -1)
    ys, lasts = [], []
    repeats = heads // B.shape[-2]
    for h in range(heads):
      at = slice(h, h + 1)
      pick = lambda v: None if v is None else wide(v[..., at])
      y, last = scan_plain(jax)(
          x[..., h, :], wide(dt[..., at]), jnp.broadcast_to(A[h], (dim, B.shape[-1])), B[..., h // repeats, :],
          C[..., h // repeats, :], pick(D), None if z is None else z[..., h, :], pick(dt_bias), delta_softplus=dt_softplus,
          initial_state=None if initial_state is None else initial_state[..., h, :, :], segment_ids=segment_ids)
      ys.append(y)
      lasts.append(last)
    return jnp.stack(ys, -2), jnp.stack(lasts, -3)
  return run


KINDS = {
    "selective_scan": (lambda **a: kernels.selective_scan(**a, return_last_state=True), scan_plain,
                       lambda options: scan_operands((2, 70, 19), 5, options)),
    "ssd": (lambda **a: kernels.ssd(**a, chunk_size=16, return_last_state=True), ssd_plain,
            lambda options: ssd_operands((2, 40, 4, 6), 2, 5, options)),
}


def loss(module, function, static, weights):
  """A loss of the output and of the last state, so that both have cotangents."""
  def run(args):
    y, last = function(**args, **static)
    return (y * weights[0]).sum() + (module.numpy.sin(last) * weights[1]).sum()
  return run


def weights_for(args, static, definition):
  y, last = definition(**args, **static)
  return draw(50, *y.shape), draw(51, *last.shape)


@pytest.mark.parametrize("wrap", ["eager", "jit"])
@pytest.mark.parametrize("options", [OPTIONS[0], *OPTIONS[-3:]], ids=" ".join)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_plain_program(kind, options, wrap):
  function, plain, operands = KINDS[kind]
  args, static = operands(options)
  weights = weights_for(args, static, scan_definition if kind == "selective_scan" else ssd_definition)
  gradient = jax.grad(loss(jax, function, static, weights))
  got = (jax.jit(gradient) if wrap == "jit" else gradient)(args)
  want = oracle.jit(oracle.grad(loss(oracle, plain(oracle), static, weights)))(args)
  assert got.keys() == want.keys()
  for name in want:
    close(got[name], want[name], 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_differences(kind):
  function, _, operands = KINDS[kind]
  args, static = operands(ALL)
  definition = scan_definition if kind == "selective_scan" else ssd_definition
  weights = weights_for(args, static, definition)
  gradient = jax.grad(loss(jax, function, static, weights))(args)

  def value(given):
    y, last = definition(**given, **static)
    return (y * weights[0]).sum() + (np.sin(last) * weights[1]).sum()

  for name, operand in args.items():
    along = draw(60, *operand.shape).astype("float64")
    moved = lambda step: {**args, name: operand.astype("float64") + step * along}
    want = (value(moved(1e-5)) - value(moved(-1e-5))) / 2e-5
    got = (np.asarray(gradient[name], "float64") * along).sum()
    np.testing.assert_allclose(got, want, rtol=2e-3, err_msg=name)


TRANSFORMS = {
    "vmap": lambda jax, f, a: jax.vmap(lambda u: f(**{**a, FIRST: u}))(np.stack([a[FIRST], 2 * a[FIRST]])),
    "vmap over parameters": lambda jax, f, a: jax.vmap(lambda A: f(**{**a, "A": A}))(np.stack([a["A"], 0.5 * a["A"]])),
    "vmap of grad of jit": lambda jax, f, a: jax.vmap(jax.grad(jax.jit(lambda u, A: f(**{**a, FIRST: u, "A": A})[0].sum()), (0, 1)),
                                                      (0, None))(np.stack([a[FIRST], 2 * a[FIRST]]), a["A"]),
    "vmap of grad over parameters": lambda jax, f, a: jax.vmap(jax.grad(lambda A: jax.numpy.sin(f(**{**a, "A": A})[0]).sum()))(
        np.stack([a["A"], 0.5 * a["A"]])),
    "jvp": lambda jax, f, a: jax.jvp(lambda given: f(**given), (a,), ({k: 0.1 * v for k, v in a.items()},)),
    "checkpoint": lambda jax, f, a: jax.grad(jax.checkpoint(lambda u: jax.numpy.sin(f(**{**a, FIRST: u})[0]).sum()))(a[FIRST]),
    "second derivative": lambda jax, f, a: jax.grad(lambda A: (jax.grad(
        lambda B: (f(**{**a, "A": B})[0] ** 2).sum())(A) * a["A"]).sum())(a["A"]),
    "forward over reverse": lambda jax, f, a: jax.jvp(jax.grad(lambda A: (f(**{**a, "A": A})[0] ** 2).sum()), (a["A"],), (a["A"],)),
    "scan": lambda jax, f, a: jax.grad(lambda u: jax.lax.scan(lambda c, x: (f(**{**a, FIRST: c * x})[0], None), u,
                                                              np.array([0.5, 0.8], "float32"))[0].sum())(a[FIRST]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_transforms_are_those_of_the_plain_program(kind, name):
  global FIRST
  FIRST = "u" if kind == "selective_scan" else "x"
  function, plain, _ = KINDS[kind]
  args, static = scan_operands((2, 9, 5), 3, ALL) if kind == "selective_scan" else ssd_operands((2, 9, 2, 3), 1, 3, ALL)
  got = TRANSFORMS[name](jax, lambda **a: function(**a, **static), args)
  want = TRANSFORMS[name](oracle, lambda **a: plain(oracle)(**a, **static), args)
  close(got, want, 2e-4)


# ---- mamba_ssm_kernel, edges and errors ------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", ["batch", "length"])
def test_mamba_ssm_kernel_is_a_selective_scan(shared):
  args, _ = scan_operands((2, 33, 6), 4, ())
  B, C = (args[k][0] if shared == "batch" else args[k][0, 0] for k in "BC")
  wide = lambda x: np.broadcast_to(x, (2, 33, 4))
  for delta in (None, args["delta"]):
    steps = np.ones_like(args["u"]) if delta is None else delta
    want = scan_definition(args["u"], steps, args["A"], wide(B), wide(C))[0]
    for fast in (True, False):
      run = lambda u: kernels.mamba_ssm_kernel(u, args["A"], B, C, delta=delta, use_associative_scan=fast)
      close(run(args["u"]), want, 1e-5)
      assert ("selective_scan" in str(jax.make_jaxpr(run)(args["u"]))) == fast


def test_resets_stop_nan():
  args, _ = scan_operands((20, 5), 3, ())
  ids = np.repeat(np.arange(2), 10)
  args["u"][3] = np.nan
  for run in (kernels.selective_scan, jax.jit(kernels.selective_scan)):
    y = np.asarray(run(**args, segment_ids=ids))
    assert np.isfinite(y[:3]).all() and np.isnan(y[3:10]).all() and np.isfinite(y[10:]).all()
  clean, _ = scan_operands((20, 5), 3, ())
  close(y[10:], scan_definition(**clean, segment_ids=ids)[0][10:], 1e-5)
  args["A"][0, 0] = np.nan
  assert np.isnan(np.asarray(kernels.selective_scan(**args))[1:, 0]).all()


def test_large_decays_are_zero_and_growth_is_infinite():
  ones = np.ones((3, 1), "float32")
  y = kernels.selective_scan(ones, 1000 * ones, np.array([[-1.0]], "float32"), ones, ones)
  close(y, 1000 * ones, 1e-6)
  ones = np.ones((9, 1), "float32")
  y = np.asarray(kernels.selective_scan(ones, 20 * ones, np.array([[1.0]], "float32"), ones, ones))
  assert np.isfinite(y[:5]).all() and (y[5:] == np.inf).all()


@pytest.mark.parametrize("shape, state", [((0, 3), 2), ((4, 0), 2), ((0, 4, 3), 2), ((4, 3), 0)], ids=str)
def test_empty_operands(shape, state):
  args, static = scan_operands(shape, state, ALL)
  y, last = kernels.selective_scan(**args, **static, return_last_state=True)
  close((y, last), scan_definition(**args, **static), 1e-5)  # without states only the skip and the gate remain
  grads = jax.grad(lambda given: kernels.selective_scan(**given, **static).sum())(args)
  assert all(grads[k].shape == args[k].shape for k in args) and not np.asarray(grads["A"]).any()
  dims = shape[:-1] + (2, shape[-1])
  args, static = ssd_operands(dims, 1, state, ALL)
  y, last = kernels.ssd(**args, **static, return_last_state=True)
  close((y, last), ssd_definition(**args, **static), 1e-5)
  grads = jax.grad(lambda given: kernels.ssd(**given, **static).sum())(args)
  assert grads["x"].shape == dims
  assert kernels.linear_recurrence(np.zeros(shape, "float32"), np.zeros(shape, "float32")).shape == shape


def errors():
  scan, static = scan_operands((2, 4, 3), 2, ALL)
  ssd, ssd_static = ssd_operands((2, 4, 2, 3), 1, 2, ALL)
  for name in ("delta", "A", "B", "C", "D", "z", "delta_bias", "initial_state"):
    part = scan[name][:1] if name == "A" else scan[name][..., :1]
    yield f"selective_scan {name}", lambda name=name, part=part: kernels.selective_scan(**{**scan, name: part}, **static), name
  for name in ("dt", "A", "C", "D", "z", "dt_bias", "initial_state"):
    yield f"ssd {name}", lambda name=name: kernels.ssd(**{**ssd, name: ssd[name][..., :1]}, **ssd_static), name
  yield "segments", lambda: kernels.selective_scan(**scan, segment_ids=np.zeros((2, 4), "float32")), "segment_ids"
  yield "segments shape", lambda: kernels.ssd(**ssd, segment_ids=np.zeros(4, "int32")), "segment_ids"
  yield "rank", lambda: kernels.selective_scan(*(np.zeros(3, "float32"),) * 5), "'u' must be"
  yield "complex", lambda: kernels.selective_scan(**{**scan, "A": scan["A"] * 1j}), "linear_recurrence"
  yield "groups", lambda: kernels.ssd(**{**ssd, **{k: np.zeros((2, 4, 3, 2), "float32") for k in "BC"}}), "multiple of the groups"
  yield "chunk", lambda: kernels.ssd(**ssd, chunk_size=0), "chunk_size must be 1 or more"
  yield "recurrence", lambda: kernels.linear_recurrence(np.zeros((2, 3)), np.zeros((2, 2))), "argument 'b'"
  yield "recurrence axis", lambda: kernels.linear_recurrence(np.zeros((2, 3)), np.zeros((2, 3)), axis=2), "axis 2"
  yield "recurrence start", lambda: kernels.linear_recurrence(np.zeros((2, 3)), np.zeros((2, 3)), np.zeros(2)), "initial"
  yield "mamba", lambda: kernels.mamba_ssm_kernel(scan["u"], scan["A"], np.zeros((5, 7)), scan["C"]), "mamba_ssm_kernel"


@pytest.mark.parametrize("call, words", [pytest.param(call, words, id=name) for name, call, words in errors()])
def test_errors_name_the_argument(call, words):
  with pytest.raises((TypeError, ValueError), match=words):
    call()


def test_the_length_may_be_any_axis_but_the_last():
  u, delta, A = draw(0, 2, 12, 6), abs(draw(1, 2, 12, 6)), -abs(draw(2, 6, 4))
  B, C, z, segments = draw(3, 2, 12, 4), draw(4, 2, 12, 4), draw(5, 2, 12, 6), np.repeat([[0, 1, 2]], 4, 1).repeat(2, 0)
  want, last = kernels.selective_scan(u, delta, A, B, C, z=z, segment_ids=segments, return_last_state=True)
  first = lambda x: jnp.moveaxis(jnp.asarray(x), 1, 0)
  for axis in (0, -3):
    got, own_last = kernels.selective_scan(first(u), first(delta), A, first(B), first(C), z=first(z), segment_ids=first(segments),
                                           return_last_state=True, axis=axis)
    assert np.array_equal(np.asarray(got).swapaxes(0, 1), want) and np.array_equal(own_last, last)
  options = {"delta": delta, "z": z}
  want = kernels.mamba_ssm_kernel(u, A, B, C, **options)
  for use_associative_scan in (True, False):
    got = kernels.mamba_ssm_kernel(first(u), A, first(B), first(C), delta=first(delta), z=first(z), axis=0,
                                   use_associative_scan=use_associative_scan)
    close(jnp.moveaxis(got, 0, 1), want, 1e-5)
  shared = kernels.mamba_ssm_kernel(first(u), A, B[0], C[0], axis=0)  # without leading axes: [length, state]
  close(jnp.moveaxis(shared, 0, 1), kernels.mamba_ssm_kernel(u, A, B[0], C[0]), 1e-6)
  with pytest.raises(ValueError, match="the last axis is that of the channels"):
    kernels.selective_scan(u, delta, A, B, C, axis=-1)
  with pytest.raises(Exception, match="axis"):
    kernels.mamba_ssm_kernel(u, A, B, C, axis=3)


@pytest.mark.parametrize("kind", ["selective_scan", "ssd"])
def test_states_that_only_the_gradient_reads_are_kept_for_it_alone(kind):
  """Compiled without a gradient, states at the starts of chunks are not stored, and results are the same."""
  if kind == "ssd":
    args, static = ssd_operands((130, 3, 16), 1, 24, ALL)
    function = lambda given: kernels.ssd(**given, **static, chunk_size=2)
    want, starts = ssd_definition(**args, **static)[0], 65 * 3 * 16 * 24 * 4
  else:
    args, static = scan_operands((130, 17), 16, ALL)
    function = lambda given: kernels.selective_scan(**given, **static)
    want, starts = scan_definition(**args, **static)[0], 3 * 16 * 17 * 4
  given = {name: jnp.asarray(x) for name, x in args.items()}
  memory = lambda f: jax.jit(f).lower(given).compile().memory_analysis().temp_size_in_bytes
  close(jax.jit(function)(given), want, 2e-5)
  both = lambda given: getattr(kernels, kind)(**given, **static, return_last_state=True)
  close(jax.jit(lambda given: both(given)[1])(given), both(given)[1], 2e-5)
  real = {name: x for name, x in given.items() if str(x.dtype) == "float32"}
  pulled = lambda given: jax.vjp(lambda real: function({**given, **real}), {name: given[name] for name in real})
  close(jax.jit(lambda given: pulled(given)[0])(given), want, 2e-5)
  gradients = lambda given: (lambda y, pull: (y, pull(y)))(*pulled(given))
  close(jax.jit(gradients)(given)[0], want, 2e-5)
  assert memory(gradients) - memory(function) >= starts
