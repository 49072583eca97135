"""capibara.kernels: sparse_attention equals attention with a mask over the blocks that a pattern leaves out."""

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import kernels
from kernel_checks import draw

pytestmark = pytest.mark.wide


def tokens_of(blocks, size, queries, keys):
  """Expands blocks to tokens."""
  return np.repeat(np.repeat(blocks, size, -2), size, -1)[..., :queries, :keys]


def seen(pattern, size, queries, keys, segments=None, causal=False, window=None, sinks=0, global_blocks=1, prefix=0):
  """Which token sees which, as the documentation defines it; not for random blocks."""
  i, j = np.arange(queries)[:, None], np.arange(keys)[None]
  row, column = i // size, j // size
  order = (j <= i) | (not causal)
  if pattern == "causal":
    return j <= i
  if pattern == "prefix":
    return (j <= i) | (j < prefix)
  if pattern == "sliding_window":
    window = 4 * size if window is None else window
    return ((j >= i - window) | (j < sinks)) & (j <= i + window) & order
  if pattern == "longformer":
    return ((abs(row - column) <= (1 if window is None else window)) | (row < global_blocks) | (column < global_blocks)) & order
  assert pattern == "document"
  return (segments[:, None, :, None] == segments[:, None, None, :]) & order


SEGMENTS = np.sort(np.random.RandomState(3).randint(0, 4, (2, 70))).astype("int32")
PATTERNS = [
    ("causal", {}),
    ("sliding_window", {"window": 10}),
    ("sliding_window", {"window": 10, "sinks": 5, "causal": True}),
    ("longformer", {}),
    ("longformer", {"window": 2, "global_blocks": 2, "causal": True}),
    ("prefix", {"prefix": 21}),
    ("document", {"segment_ids": SEGMENTS}),
    ("document", {"segment_ids": SEGMENTS, "causal": True}),
]
Q, K, V, SLOPE = draw(0, 2, 4, 70, 8), draw(1, 2, 2, 70, 8), draw(2, 2, 2, 70, 8), draw(3, 2, 4, 70, 8)


def check(sparse, mask):
  """Checks that values and gradients equal those of dense attention with a mask."""
  dense = lambda q, k, v: kernels.flash_attention(q, k, v, attention_mask=mask)
  loss = lambda f: lambda *args: (f(*args) * SLOPE).sum()
  for wrap in (lambda f: f, jax.jit):
    np.testing.assert_allclose(wrap(sparse)(Q, K, V), dense(Q, K, V), rtol=1e-5, atol=1e-5)
    for one, other in zip(wrap(jax.grad(loss(sparse), (0, 1, 2)))(Q, K, V), jax.grad(loss(dense), (0, 1, 2))(Q, K, V)):
      np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 8, 16, 64, 100])
@pytest.mark.parametrize("pattern, options", PATTERNS, ids=str)
def test_patterns(pattern, options, size):
  words = {name: value for name, value in options.items() if name != "segment_ids"}
  check(lambda q, k, v: kernels.sparse_attention(q, k, v, pattern, size, **options),
        seen(pattern, size, 70, 70, options.get("segment_ids"), **words))


def test_lists_of_blocks():
  random = np.random.RandomState(1)
  for shape in ((5, 5), (4, 5, 5), (2, 1, 5, 5)):
    blocks = random.rand(*shape) > 0.6  # some rows keep nothing
    check(lambda q, k, v: kernels.sparse_attention(q, k, v, blocks, 16), tokens_of(blocks, 16, 70, 70))
    lists = np.full((*shape[:-1], 5), -1, "int32")
    for at in np.argwhere(blocks):
      lists[(*at[:-1], at[-1])] = at[-1]
    check(lambda q, k, v: kernels.sparse_attention(q, k, v, lists, 16), tokens_of(blocks, 16, 70, 70))


def kept_blocks(count, size, **options):
  """The blocks that a pattern keeps, found with values that distinguish blocks of keys and logits that are all 0."""
  length = count * size
  value = jnp.repeat(jnp.eye(count), size, 0)[None, None]
  zero = jnp.zeros((1, 1, length, 4))
  return np.asarray(kernels.sparse_attention(zero, zero, value, block_size=size, **options))[0, 0, ::size] > 0


@pytest.mark.parametrize("pattern", ["bigbird", "block_sparse"])
def test_random_blocks(pattern):
  local = kept_blocks(16, 4, sparsity_pattern="longformer")
  kept = kept_blocks(16, 4, sparsity_pattern=pattern, random_blocks=3)
  assert (kept >= local).all()
  assert ((kept & ~local).sum(1)[1:] == 3).all()
  assert (kept == kept_blocks(16, 4, sparsity_pattern=pattern, random_blocks=3, seed=0)).all()
  assert (kept != kept_blocks(16, 4, sparsity_pattern=pattern, random_blocks=3, seed=1)).any()
  assert (kept_blocks(16, 4, sparsity_pattern=pattern, random_blocks=0) == local).all()


def test_blocks_may_be_traced_and_mapped():
  masks = np.random.RandomState(5).rand(3, 5, 5) > 0.5
  got = jax.jit(jax.vmap(lambda m: kernels.sparse_attention(Q, K, V, m, 16)))(masks)
  for i in range(3):
    want = kernels.flash_attention(Q, K, V, attention_mask=tokens_of(masks[i], 16, 70, 70))
    np.testing.assert_allclose(got[i], want, rtol=1e-5, atol=1e-5)


def test_other_derivatives():
  sparse = lambda q: kernels.sparse_attention(q, K, V, "longformer", 16)
  dense = lambda q: kernels.flash_attention(q, K, V, attention_mask=seen("longformer", 16, 70, 70))
  forward = lambda f: jax.jvp(f, (Q,), (Q + 1,))[1]
  second = lambda f: jax.grad(lambda q: (jax.grad(lambda x: (f(x) ** 2).sum())(q) * Q).sum())(Q)
  for derivative in (forward, second):
    np.testing.assert_allclose(derivative(sparse), derivative(dense), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("pattern, options, words", [
    ("banded", {},
     "sparse_attention: expected one of 'causal', 'sliding_window', 'bigbird', 'block_sparse', 'longformer', 'prefix', 'document'"),
    ("causal", {"block_size": 0}, "sparse_attention: expected 1 or more (argument 'block_size'), got 0"),
    ("causal", {"window": 3}, "the argument 'window' belongs to the patterns 'sliding_window', 'bigbird'"),
    ("longformer", {"random_blocks": 1},
     "the argument 'random_blocks' belongs to the patterns 'bigbird', 'block_sparse', got it with 'longformer'"),
    ("sliding_window", {"window": -3}, "sparse_attention: expected 0 or more (argument 'window'), got -3"),
    ("prefix", {}, "the pattern 'prefix' needs its number of tokens (argument 'prefix')"),
    ("document", {}, "the pattern 'document' needs the documents of the tokens (argument 'segment_ids')"),
    (np.ones((4, 5), bool), {"block_size": 16},
     "expected bool[...,5,5], or int lists [...,5,count] of blocks of keys (argument 'sparsity_pattern'), got bool[4,5]"),
    (np.ones((3, 5, 5), bool), {"block_size": 16},
     "sparse_attention: expected bool that broadcasts to [2,4,5,5] (argument 'sparsity_pattern')"),
])
def test_wrong_arguments_are_named(pattern, options, words):
  with pytest.raises((TypeError, ValueError)) as caught:
    kernels.sparse_attention(Q, K, V, pattern, **options)
  assert words in str(caught.value)
