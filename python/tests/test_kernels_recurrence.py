"""Recurrences of capibara.kernels against their definitions in float64, and against jax's derivatives of a plain loop."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels

TOLERANCE = {"float32": 2e-5, "bfloat16": 4e-2, "float16": 4e-3}


def draw(seed, *shape):
  return np.random.RandomState(seed).randn(*shape).astype("float32")


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
  """Step by step; leading axes are batches."""
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
  """As a selective scan of each head."""
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
  """(positional arguments, keywords); `options` names those that are given."""
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
# Ragged, tiny, a length of one, several chunks, dims that fill no vector and several blocks of channels.
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
