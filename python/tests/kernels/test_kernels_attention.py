"""capibara.kernels: flash_attention has the values and derivatives of softmax attention in float64, under every option."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import close, draw

pytestmark = pytest.mark.wide

TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 3e-3}
KEY = np.array([7, 2026], "uint32")


def threefry(k0, k1, x0, x1):
  """The block function of Salmon et al., in Python for comparison."""
  word = np.uint64(0xffffffff)
  x0, x1 = (np.array(x, np.uint64) for x in np.broadcast_arrays(x0, x1))
  schedule = [np.uint64(k0), np.uint64(k1), np.uint64(k0) ^ np.uint64(k1) ^ np.uint64(0x1BD11BDA)]
  x0, x1 = x0 + schedule[0] & word, x1 + schedule[1] & word
  for group in range(5):
    for amount in ([13, 15, 26, 6], [17, 29, 16, 24])[group % 2]:
      x0 = x0 + x1 & word
      x1 = ((x1 << np.uint64(amount) | x1 >> np.uint64(32 - amount)) & word) ^ x0
    x0, x1 = x0 + schedule[(group + 1) % 3] & word, x1 + schedule[(group + 2) % 3] + np.uint64(group + 1) & word
  return x0, x1


def philox(k0, k1, words):
  """Philox-4x32 by the same authors, with seven rounds."""
  word, shift = np.uint64(0xffffffff), np.uint64(32)
  words = [np.array(x, np.uint64) for x in np.broadcast_arrays(*words)]
  for i in range(7):
    first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
    keys = (np.uint64((int(k) + i * step) % 2**32) for k, step in ((k0, 0x9E3779B9), (k1, 0xBB67AE85)))
    words = [second >> shift ^ words[1] ^ next(keys), second & word, first >> shift ^ words[3] ^ next(keys), first & word]
  return words


def dropout(rate, batch, heads, queries, keys):
  """The factors by which dropout multiplies probabilities: 0, or the inverse of the keep probability."""
  threshold = round(rate * 65536)
  row, column = np.arange(queries)[:, None], np.arange(keys)[None]
  place = 16 * (column >> 2 & 1) + 8 * (column & 1) + 4 * (column >> 1 & 1) + 2 * (column >> 3 & 1) + (row >> 3 & 1)
  factors = np.zeros((batch, heads, queries, keys))
  for head in range(batch * heads):
    own = threefry(*KEY, head, 0x61747464)
    words = philox(*own, (column // 16, 0, 8 * (row // 16) + row % 8, 0))
    bit = lambda word, at: word >> (at % 32).astype(np.uint64) & np.uint64(1)

    def number(at):
      """A number of eight binary digits."""
      upper = (bit(word, at) << np.uint64(4 + i) for i, word in enumerate(words))
      lower = ((bit(word, at + 13) ^ bit(words[(i + 1) % 4], at + 37)) << np.uint64(i) for i, word in enumerate(words))
      return sum(upper) + sum(lower)
    upper, lower = number(place), number(place + 24)
    factors[head // heads, head % heads] = (upper * np.uint64(256) + lower >= threshold) * 65536 / (65536 - threshold)
  return factors


def positions_seen(queries, keys, causal=False, window=None, sinks=0, prefix=0, query_offset=0):
  query, key = np.arange(queries)[:, None] + query_offset, np.arange(keys)[None]
  seen = np.ones((queries, keys), bool)
  if window is not None:
    left, right = window if isinstance(window, tuple) else (window, window)
    seen &= ((key >= query - left) | (key < sinks)) & (key <= query + right)
  if causal:
    seen &= key <= query
  return seen | (key < prefix)


def definition(q, k, v, seen=True, bias=None, scale=None, factors=None):
  """Plain softmax attention; rows that see nothing are 0."""
  xp = oracle.numpy
  k, v = (xp.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
  logits = xp.einsum("bhnd,bhmd->bhnm", q, k) * (q.shape[3] ** -0.5 if scale is None else scale)
  logits = logits if bias is None else logits + bias
  seen = xp.broadcast_to(seen, logits.shape)
  most = oracle.lax.stop_gradient(xp.max(xp.where(seen, logits, -1e30), axis=-1, keepdims=True))
  shares = xp.where(seen, xp.exp(xp.where(seen, logits - most, 0)), 0)
  total = shares.sum(-1, keepdims=True)
  shares = shares / xp.where(total == 0, 1, total)
  return (shares if factors is None else shares * factors) @ v


def reference(q, k, v, options, bias=None):
  """The definition for keyword arguments of flash_attention."""
  options = dict(options)
  names = ("causal", "window", "sinks", "query_offset")
  seen = positions_seen(q.shape[2], k.shape[2], **{name: options.pop(name) for name in names if name in options})
  seen = seen & options.pop("attention_mask", True)
  if "segment_ids" in options:
    own = options.pop("segment_ids")
    seen = seen & (own[:, None, :, None] == options.pop("key_segment_ids", own)[:, None, None, :])
  rate, _ = options.pop("dropout_rate", 0), options.pop("dropout_key", None)
  factors = dropout(rate, *q.shape[:3], k.shape[2]) if rate else None
  return definition(q, k, v, seen, options.pop("bias", bias), options.pop("scale", None), factors)


def make_options(seed, batch, heads, queries, keys):
  """All options for these sizes, by name."""
  random = np.random.RandomState(seed)
  mask = random.rand(batch, 1, queries, keys) > 0.3
  mask[:, :, :: 5] = False  # rows that see nothing
  return {
      "plain": {},
      "causal": {"causal": True},
      "mask": {"attention_mask": mask},
      "padding": {"attention_mask": mask[:, :, 1 % queries][:, :, None]},
      "bias": {"bias": draw(seed + 1, 1, heads, queries, keys)},
      "bias of keys": {"bias": draw(seed + 1, batch, 1, 1, keys)},
      "window": {"window": (6, 3)},
      "sinks": {"window": 4, "sinks": 3, "causal": True},
      "segments": {"segment_ids": np.sort(random.randint(0, 3, (batch, queries))).astype("int32"),
                   "key_segment_ids": np.sort(random.randint(0, 3, (batch, keys))).astype("int32")},
      "offset": {"causal": True, "query_offset": max(keys - queries, 0)},
      "scale": {"scale": -0.7},
      "dropout": {"dropout_rate": 0.3, "dropout_key": KEY},
  }


# batch, heads, key heads, queries, keys, head_dim, value_dim
SIZES = [(1, 1, 1, 1, 1, 1, 1), (2, 4, 2, 5, 7, 3, 2), (1, 2, 2, 64, 64, 16, 16), (2, 2, 1, 70, 133, 24, 40), (1, 4, 1, 1, 150, 32, 32),
         (1, 1, 1, 97, 1, 5, 5)]


def operands(sizes, seed=0):
  batch, heads, groups, queries, keys, size, value_size = sizes
  return draw(seed, batch, heads, queries, size), draw(seed + 1, batch, groups, keys, size), draw(seed + 2, batch, groups, keys, value_size)


def check(sizes, options, dtype="float32", wrap=lambda f: f):
  """Values and gradients, including the bias's, against float64."""
  with oracle.enable_x64(True):
    q, k, v = (np.asarray(jnp.asarray(x).astype(dtype).astype("float32")) for x in operands(sizes))
    slope = draw(9, *q.shape[:3], v.shape[3])
    bias = options.get("bias")
    rest = {name: value for name, value in options.items() if name != "bias"}
    wide = [np.asarray(x, "float64") for x in (q, k, v)] + ([] if bias is None else [np.asarray(bias, "float64")])
    want, pull = oracle.vjp(lambda q, k, v, *bias: reference(q, k, v, rest, *bias), *wide)
    slopes = pull(np.asarray(slope, "float64"))
  narrow = [jnp.asarray(x).astype(dtype) for x in (q, k, v)] + ([] if bias is None else [jnp.asarray(bias)])

  def attend(q, k, v, bias=None):
    return kernels.flash_attention(q, k, v, bias=bias, **rest)

  got = wrap(attend)(*narrow)
  assert str(got.dtype) == dtype
  close(got, want, TOLERANCE[dtype])
  loss = lambda *args: (attend(*args).astype("float32") * slope).sum()
  gradients = wrap(jax.grad(loss, tuple(range(len(narrow)))))(*narrow)
  biggest = max(np.abs(np.asarray(x)).max(initial=1) for x in slopes)
  close([np.asarray(g, "float32") / biggest for g in gradients], [s / biggest for s in slopes], 2 * TOLERANCE[dtype])


@pytest.mark.parametrize("option", make_options(0, 1, 1, 1, 1))
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values_and_gradients(sizes, option):
  batch, heads, _, queries, keys, _, _ = sizes
  check(sizes, make_options(3, batch, heads, queries, keys)[option])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("option", ["causal", "mask", "bias", "dropout"])
def test_types(dtype, wrap, option):
  check((2, 2, 1, 40, 50, 32, 32), make_options(3, 2, 2, 40, 50)[option], dtype, wrap)


@pytest.mark.parametrize("seed", range(16))
def test_random_sizes_and_options_together(seed):
  random = np.random.RandomState(seed)
  groups, per_group = random.randint(1, 4, 2)
  sizes = (random.randint(1, 3), groups * per_group, groups, *random.choice([1, 2, 9, 33, 128, 200], 2),
           *random.choice([1, 8, 20, 64, 129], 2))
  options = {}
  for name, one in make_options(seed, sizes[0], sizes[1], sizes[3], sizes[4]).items():
    if random.rand() < 0.4 and name not in ("bias of keys", "padding"):
      options |= one
  check(tuple(int(s) for s in sizes), options)


def test_long_sequences():
  check((1, 1, 1, 700, 1100, 16, 16), {"causal": True, "query_offset": 400})


Q, K, V = operands((2, 2, 1, 9, 12, 8, 8))
MASK = np.random.RandomState(4).rand(9, 12) > 0.3


def plain(q, k, v, **options):
  seen = options.get("attention_mask", True)
  seen = seen & positions_seen(q.shape[2], k.shape[2], causal=options.get("causal", False))
  return definition(q, k, v, seen, options.get("bias"))


TRANSFORMS = {
    "vmap": lambda jax, f: jax.vmap(lambda q: f(q, K, V, causal=True))(np.stack([Q, 2 * Q])),
    "vmap over masks": lambda jax, f: jax.vmap(lambda m: f(Q, K, V, attention_mask=m))(np.stack([MASK, ~MASK])),
    "vmap over all": lambda jax, f: jax.vmap(lambda q, k, v: f(q, k, v, attention_mask=MASK), (0, 1, 2), 1)(
        np.stack([Q, -Q]), np.stack([K, K + 1], 1), np.stack([V, V * 3], 2)),
    "jvp": lambda jax, f: jax.jvp(lambda q, k, v: f(q, k, v, causal=True), (Q, K, V), (Q + 1, K * 2, V)),
    "vmap of grad of jit": lambda jax, f: jax.vmap(
        jax.grad(jax.jit(lambda q, k: (f(q, k, V, attention_mask=MASK) ** 2).sum()), (0, 1)), (0, None))(np.stack([Q, 2 * Q]), K),
    "vmap of grad of the bias": lambda jax, f: jax.vmap(jax.grad(lambda b, q: (f(q, K, V, bias=b) ** 2).sum()), (None, 0))(
        draw(5, 1, 2, 9, 12), np.stack([Q, 2 * Q])),
    "grad of grad": lambda jax, f: jax.grad(lambda q: (jax.grad(lambda x: (f(x, K, V, causal=True) ** 3).sum())(q) * Q).sum())(Q),
    "jvp of grad": lambda jax, f: jax.jvp(jax.grad(lambda k: (f(Q, k, V, attention_mask=MASK) ** 2).sum()), (K,), (K + 1,))[1],
    "checkpoint": lambda jax, f: jax.grad(jax.checkpoint(lambda q: jax.numpy.sin(f(q, K, V, causal=True)).sum()))(Q),
    "scan": lambda jax, f: jax.grad(lambda q: jax.lax.scan(lambda c, k: (c + f(c, k, V), None), q, np.stack([K, K / 2]))[0].sum())(Q),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_under_transforms(name):
  close(TRANSFORMS[name](jax, kernels.flash_attention), TRANSFORMS[name](oracle, plain), 2e-4)


def test_dropout_under_vmap_is_that_of_each_example():
  call = lambda q, key: kernels.flash_attention(q, K, V, dropout_rate=0.5, dropout_key=key)
  queries, keys = np.stack([Q, Q]), jax.random.split(jax.random.key(3))
  for axes in ((0, None), (None, 0), (0, 0)):
    got = jax.vmap(call, axes)(queries if axes[0] == 0 else Q, keys if axes[1] == 0 else keys[0])
    for i in range(2):
      close(got[i], call(Q, keys[i] if axes[1] == 0 else keys[0]), 1e-6)


def on_xla(function, *arguments):
  """The results of XLA's CPU backend for a program's lowered text."""
  sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "oracle"))
  import judge
  try:
    return judge.Runner().run(jax.jit(function).lower(*arguments).as_text(), arguments)
  finally:
    oracle.config.update("jax_enable_x64", False)


def test_xla_drops_the_same_elements():
  q, k, v = operands((2, 4, 2, 40, 600, 16, 16))
  attend = lambda q, k, v: kernels.flash_attention(q, k, v, causal=True, query_offset=560, dropout_rate=0.4, dropout_key=KEY)
  gradient = jax.grad(lambda *args: (attend(*args) ** 2).sum(), (0, 1, 2))
  close(on_xla(attend, q, k, v), [attend(q, k, v)], 1e-5)
  close(on_xla(gradient, q, k, v), gradient(q, k, v), 1e-4)


def test_finite_differences():
  with jax.enable_x64(True):
    points = [jnp.asarray(x, "float64") for x in operands((1, 2, 1, 13, 17, 8, 8))]
    options = {"causal": True, "query_offset": 4, "dropout_rate": 0.2, "dropout_key": KEY, "scale": 0.5}
    f = lambda *args: float((kernels.flash_attention(*args, **options) ** 2).sum())
    slopes = jax.grad(lambda *args: (kernels.flash_attention(*args, **options) ** 2).sum(), (0, 1, 2))(*points)
    for i, slope in enumerate(slopes):
      step = 1e-5 * jnp.asarray(draw(20 + i, *slope.shape), "float64")
      up, down = (f(*points[:i], points[i] + sign * step, *points[i + 1:]) for sign in (1, -1))
      np.testing.assert_allclose(float((slope * step).sum()), (up - down) / 2, rtol=1e-6)


def test_nothing_is_as_large_as_queries_by_keys():
  q = k = v = jnp.zeros((1, 1, 4096, 8))
  grad = jax.grad(lambda q: kernels.flash_attention(q, k, v, causal=True).sum())
  for text in (jax.jit(lambda q: kernels.flash_attention(q, k, v, causal=True)).lower(q).as_text(), jax.jit(grad).lower(q).as_text()):
    assert "4096x8x" in text and "4096x4096" not in text


def test_nan_and_infinite_values_stay_in_their_rows():
  q = Q.copy()
  q[0, 0, 3, 0] = np.nan
  got = np.asarray(kernels.flash_attention(q, K, V))
  assert np.isnan(got[0, 0, 3]).all() and np.isfinite(np.delete(got[0, 0], 3, 0)).all()
  bias = np.where(MASK, 0, -np.inf).astype("float32")
  close(kernels.flash_attention(Q, K, V, bias=bias), kernels.flash_attention(Q, K, V, attention_mask=MASK), 1e-6)


def test_no_queries_and_no_keys():
  assert kernels.flash_attention(Q[:, :, :0], K, V).shape == (2, 2, 0, 8)
  assert not np.asarray(kernels.flash_attention(Q, K[:, :, :0], V[:, :, :0])).any()
  gradient = jax.grad(lambda q: kernels.flash_attention(q, K[:, :, :0], V[:, :, :0]).sum())(jnp.asarray(Q))
  assert not np.asarray(gradient).any()


def test_sequence_parallel_changes_nothing():
  assert (kernels.flash_attention(Q, K, V, None, 0.0, True, True) == kernels.flash_attention(Q, K, V, causal=True)).all()


@pytest.mark.parametrize("options, words", [
    ({"dropout_rate": 0.1}, "flash_attention: dropout needs a PRNG key (argument 'dropout_key')"),
    ({"dropout_rate": 1.0, "dropout_key": KEY}, "flash_attention: expected a number in [0, 1) (argument 'dropout_rate'), got 1"),
    ({"dropout_rate": 0.1, "dropout_key": np.zeros(4, "uint32")},
     "flash_attention: expected one threefry2x32 key (argument 'dropout_key')"),
    ({"attention_mask": np.ones((9, 12), "float32")},
     "(argument 'attention_mask'), got float32[9,12]; what is added to logits is the argument 'bias'"),
    ({"attention_mask": np.ones((9, 11), bool)}, "expected bool that broadcasts to [2,2,9,12] (argument 'attention_mask')"),
    ({"bias": np.ones((3, 9, 12), "float32")}, "expected float32 that broadcasts to [2,2,9,12] (argument 'bias')"),
    ({"window": (1, 2, 3)}, "flash_attention: expected one number of keys or two, before and after (argument 'window'), got 3"),
    ({"window": -1}, "(argument 'window'), got -1"),
    ({"segment_ids": np.zeros((2, 8), "int32")}, "(argument 'segment_ids')"),
    ({"key_segment_ids": np.zeros((2, 12), "int32")}, "need those of queries (argument 'segment_ids')"),
    ({"key": K[..., :7]}, "flash_attention: expected float32[2,key_heads,keys,8] as of the query (argument 'key'), got float32[2,1,12,7]"),
    ({"key": K.repeat(3, 1)}, "expected a number of heads that divides the 2 of the query (argument 'key'), got float32[2,3,12,8]"),
    ({"value": V[:, :, 1:]}, "expected float32[2,1,12,value_dim] as of the key (argument 'value'), got float32[2,1,11,8]"),
    ({"query": Q[0]},
     "expected floating [batch, heads, length, head_dim] with a head_dim of 1 or more (argument 'query'), got float32[2,9,8]"),
])
def test_wrong_arguments_are_named(options, words):
  with pytest.raises((TypeError, ValueError)) as caught:
    kernels.flash_attention(**({"query": Q, "key": K, "value": V} | options))
  assert words in str(caught.value)
