"""Programs around written-out attention, each changed in one or two places: jit gives jax's results, including NaN and inf."""

import itertools

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax

# Operands of 4096 elements run fused; 128 keys are several blocks, some of which causal order skips.
LENGTH, SIZE = 128, 32
TOLERANCE = {"float32": 3e-5, "bfloat16": 4e-2, "float16": 6e-3}


def draw(seed, *shape):
  return np.random.RandomState(seed).standard_normal(shape).astype("float32")


def positions(lib, dtype="int32"):
  return lib.lax.iota(dtype, LENGTH)


def order(dtype, left=None, shift=0):
  """Causal order, or a window, of positions of one type."""
  def seen(lib, s):
    own, other = positions(lib, dtype)[:, None], positions(lib, dtype)
    causal = own + np.dtype(dtype).type(shift) >= other if shift else own >= other
    return causal if left is None else causal & (other >= own - np.dtype(dtype).type(left))
  return seen


def fixed(seed, share):
  seen = np.random.RandomState(seed).rand(LENGTH, LENGTH) < share
  return lambda lib, s: lib.numpy.asarray(seen)


LOGITS = {
    "s": lambda lib, s, x: s,
    "s + s": lambda lib, s, x: s + s,
    "s + s.T": lambda lib, s, x: s + s.T,
    "s - s": lambda lib, s, x: s - s,
    "-s": lambda lib, s, x: -s,
    "s * s": lambda lib, s, x: s * s,
    "s.T": lambda lib, s, x: s.T,
    "s / 4": lambda lib, s, x: s / 4,
    "s * -0.5": lambda lib, s, x: s * -0.5,
    "s * 0": lambda lib, s, x: s * 0,
    "s * 1e38": lambda lib, s, x: s * 1e38,
    "s * 1e20 * 1e-20": lambda lib, s, x: s * 1e20 * 1e-20,
    "s * 1e-30": lambda lib, s, x: s * 1e-30,
    "(s + b) * 2": lambda lib, s, x: (s + x["bias"]) * 2,
    "s * 2 + b": lambda lib, s, x: s * 2 + x["bias"],
    "s + b + b.T": lambda lib, s, x: s + x["bias"] + x["bias"].T,
    "s + row": lambda lib, s, x: s + x["bias"][0],
    "s + column": lambda lib, s, x: s + x["bias"][:, :1],
    "s + q sums": lambda lib, s, x: s + x["q"].sum(-1)[:, None] * x["k"].sum(-1)[None],
    "s + 1": lambda lib, s, x: s + 1,
    "second product": lambda lib, s, x: s + x["k"] @ x["q"].T,
    "tanh(s)": lambda lib, s, x: lib.numpy.tanh(s),
    "s as int": lambda lib, s, x: s.astype("int32").astype(s.dtype),
    "s as bfloat16": lambda lib, s, x: s.astype("bfloat16").astype("float32"),
    "s as float16": lambda lib, s, x: s.astype("float16").astype("float32"),
    "padding added": lambda lib, s, x: s + lib.numpy.where(positions(lib) < 90, 0., -1e30),
    "all hidden by addition": lambda lib, s, x: s + lib.numpy.where(positions(lib)[:, None] < 90, 0., -np.inf),
}
MASKS = {
    "none": None,
    "causal": order("int32"),
    "int8": order("int8"),
    "int8 + 100": order("int8", shift=100),
    "int16 + 32700": order("int16", shift=32700),
    "uint8": order("uint8"),
    "uint8 + 200": order("uint8", shift=200),
    "uint32 window": order("uint32", left=4),
    "int32 window": order("int32", left=4),
    "int8 window of 120": order("int8", left=120),
    "float32": order("float32"),
    "later keys": lambda lib, s: positions(lib)[:, None] <= positions(lib),
    "same position": lambda lib, s: positions(lib)[:, None] == positions(lib),
    "not causal": lambda lib, s: ~(positions(lib)[:, None] >= positions(lib)),
    "half": fixed(3, 0.5),
    "few": fixed(4, 0.01),
    "nothing": fixed(4, 0),
    "causal and half": lambda lib, s: MASKS["causal"](lib, s) & MASKS["half"](lib, s),
    "causal or half": lambda lib, s: MASKS["causal"](lib, s) | MASKS["half"](lib, s),
    "of logits": lambda lib, s: s > 0,
    "transposed": lambda lib, s: MASKS["causal"](lib, s).T,
    "a row": lambda lib, s: (positions(lib) < 100)[None],
    "a column": lambda lib, s: (positions(lib) < 100)[:, None],
    "always": lambda lib, s: lib.numpy.asarray(True),
}
SHARES = {
    "p": lambda lib, s: lib.nn.softmax(s, axis=-1),
    "columns": lambda lib, s: lib.nn.softmax(s, axis=0),
    "p + p": lambda lib, s: (lambda p: p + p)(lib.nn.softmax(s, axis=-1)),
    "p.T": lambda lib, s: lib.nn.softmax(s, axis=-1).T,
    "p * p": lambda lib, s: (lambda p: p * p)(lib.nn.softmax(s, axis=-1)),
    "twice": lambda lib, s: lib.nn.softmax(lib.nn.softmax(s, axis=-1), axis=-1),
    "no maximum": lambda lib, s: (lambda e: e / e.sum(-1, keepdims=True))(lib.numpy.exp(s)),
    "sums of columns": lambda lib, s: (lambda e: e / e.sum(0))(lib.numpy.exp(s - s.max(-1, keepdims=True))),
    "sums of rows on columns": lambda lib, s: (lambda e: e / e.sum(-1))(lib.numpy.exp(s - s.max(-1, keepdims=True))),
    "another maximum": lambda lib, s: (lambda e: e / e.sum(-1, keepdims=True))(lib.numpy.exp(s - s.max(0))),
    "of the negative": lambda lib, s: (lambda e: e / e.sum(-1, keepdims=True))(lib.numpy.exp(s.max(-1, keepdims=True) - s)),
    "log": lambda lib, s: lib.numpy.exp(lib.nn.log_softmax(s, axis=-1)),
}
VALUES = {
    "p @ v": lambda lib, p, x: p @ x["v"],
    "p @ p": lambda lib, p, x: p @ p,
    "p @ (p @ v)": lambda lib, p, x: p @ (p @ x["v"]),
    "p.T @ v": lambda lib, p, x: p.T @ x["v"],
    "p @ k": lambda lib, p, x: p @ x["k"],
    "p @ q": lambda lib, p, x: p @ x["q"],
    "p @ -v": lambda lib, p, x: p @ -x["v"],
    "(v.T @ p.T).T": lambda lib, p, x: (x["v"].T @ p.T).T,
    "p @ v + p @ k": lambda lib, p, x: p @ x["v"] + p @ x["k"],
    "p @ v[:, 0]": lambda lib, p, x: p @ x["v"][:, 0],
    "v.T @ p": lambda lib, p, x: x["v"].T @ p,
}
READERS = {
    "the probabilities": lambda lib, s, p, y: (y, p),
    "their sums": lambda lib, s, p, y: (y, p.sum(0)),
    "the logits": lambda lib, s, p, y: (y, s),
    "the largest logit": lambda lib, s, p, y: (y, s.max(-1)),
    "the result twice": lambda lib, s, p, y: (y, y * y),
    "a second attention": lambda lib, s, p, y: (y, lib.nn.softmax(s * 2, axis=-1) @ y),
}


def filled(which, rows, value):
  def fill(x):
    x[which][rows] = value
  return fill


def times(**factors):
  def fill(x):
    for name, factor in factors.items():
      x[name] *= np.float32(factor)
  return fill


FILLS = {
    f"{which}[{rows}] = {value}": filled(which, rows, value)
    for which, rows, value in itertools.product("qkv", (0, 64, 127), (np.nan, np.inf, -np.inf))
} | {
    "v of 3e38": filled("v", slice(None), 3e38),
    "v[127, 3] of 1e38": filled("v", (127, 3), 1e38),
    "bias[5] = nan": filled("bias", 5, np.nan),
    "bias[5] = inf": filled("bias", 5, np.inf),
    "bias[5] = -inf": filled("bias", 5, -np.inf),
    "bias[5] = -3e38": filled("bias", 5, -3e38),
    "bias[:, 7] = -inf": filled("bias", (slice(None), 7), -np.inf),
    "large logits": times(q=1e10, k=1e10),
    "logits that overflow": times(q=1e20, k=1e20),
    "small logits": times(q=1e-20, k=1e-20),
    "no queries": times(q=0),
    "no values": times(v=0),
}


class Mutant:
  def __init__(self, logits="s", mask="none", hidden=-1e30, shares="p", values="p @ v", reader=None, fill=None,
               dtype="float32"):
    self.parts = dict(logits=logits, mask=mask, hidden=hidden, shares=shares, values=values, reader=reader, fill=fill,
                      dtype=dtype)
    self.__dict__.update(self.parts)

  def name(self):
    usual = Mutant.__init__.__defaults__
    return ", ".join(str(value) for value, default in zip(self.parts.values(), usual) if value != default) or "as it is"

  def operands(self):
    x = {"q": 0.5 * draw(0, LENGTH, SIZE), "k": 0.5 * draw(1, LENGTH, SIZE), "v": draw(2, LENGTH, SIZE),
         "bias": draw(3, LENGTH, LENGTH)}
    if self.fill:
      FILLS[self.fill](x)
    return list(x.values())

  def program(self, lib):
    def run(q, k, v, bias):
      x = {"q": q, "k": k, "v": v, "bias": bias.astype("float32")}
      s = LOGITS[self.logits](lib, (q @ k.T).astype("float32"), x)
      if MASKS[self.mask]:
        s = lib.numpy.where(MASKS[self.mask](lib, s), s, self.hidden)
      p = SHARES[self.shares](lib, s).astype(q.dtype)
      y = VALUES[self.values](lib, p, x)
      return READERS[self.reader](lib, s, p, y) if self.reader else y
    return run

  def gradient(self, lib):
    def loss(*x):
      total = 0.
      for y in lib.tree.leaves(self.program(lib)(*x)):
        weights = np.cos(np.arange(y.size, dtype="float32")).reshape(y.shape)
        total = total + (y.astype("float32") * weights).sum()
      return total
    return lib.grad(loss, (0, 1, 2, 3))


def mutants():
  masks = ("none", "causal", "half")
  yield from (Mutant(logits=name, mask=mask) for name in LOGITS for mask in masks)
  yield from (Mutant(mask=name, hidden=hidden) for name in MASKS for hidden in (-1e30, -np.inf, -1e4))
  yield from (Mutant(shares=name, mask=mask) for name in SHARES for mask in masks)
  yield from (Mutant(values=name, mask=mask) for name in VALUES for mask in masks)
  yield from (Mutant(reader=name, mask=mask) for name in READERS for mask in masks)
  yield from (Mutant(fill=name, mask="causal", logits="s + row" if "bias" in name else "s") for name in FILLS)
  yield from (Mutant(fill=name, mask=mask, hidden=-np.inf) for name in list(FILLS)[::4] for mask in masks)
  yield from (Mutant(dtype=dtype, mask=mask, logits=name) for dtype in ("bfloat16", "float16") for mask in masks
              for name in ("s", "s / 4", "s + row"))
  yield from (Mutant(dtype="float16", mask="causal", fill=name) for name in ("large logits", "v[127] = nan"))


ALL = {mutant.name(): mutant for mutant in mutants()}


def compared(got, want, dtype):
  for a, b in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    assert a.shape == b.shape and str(a.dtype) == str(b.dtype)
    a, b = np.asarray(a).astype("float64"), np.asarray(b).astype("float64")
    finite = np.isfinite(b)
    np.testing.assert_array_equal(np.where(finite, 0, b), np.where(np.isfinite(a), 0, a))
    scale = np.abs(b[finite]).max(initial=1e-6)
    np.testing.assert_allclose(a[finite], b[finite], rtol=0, atol=TOLERANCE[dtype] * scale)


def test_there_are_enough_of_them():
  assert len(ALL) >= 200


@pytest.mark.parametrize("name", ALL)
def test_values_are_those_of_jax(name):
  mutant = ALL[name]
  arrays = mutant.operands()
  got = jax.jit(mutant.program(jax))(*(jax.numpy.asarray(x, mutant.dtype) for x in arrays))
  compared(got, mutant.program(oracle)(*(oracle.numpy.asarray(x, mutant.dtype) for x in arrays)), mutant.dtype)


# Their gradients are differences of large numbers that are equal except for rounding: a sum of probabilities does not
# depend on a column of biases, nor does a mean on its weights if all values are the same.
ROUNDING_ALONE = ("s + column", "v of 3e38")


@pytest.mark.parametrize("name", [name for name in list(ALL)[::3] if not any(part in name for part in ROUNDING_ALONE)])
def test_gradients_are_those_of_jax(name):
  mutant = ALL[name]
  arrays = mutant.operands()
  got = jax.jit(mutant.gradient(jax))(*(jax.numpy.asarray(x, mutant.dtype) for x in arrays))
  compared(got, mutant.gradient(oracle)(*(oracle.numpy.asarray(x, mutant.dtype) for x in arrays)), mutant.dtype)
