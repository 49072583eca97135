"""Attention written out in programs, including jax.nn.dot_product_attention: it prints as in jax and runs fused."""

import re

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp

BATCH, QUERIES, KEYS, HEADS, GROUPS, SIZE = 2, 72, 90, 4, 2, 16


def draw(seed, *shape):
  return np.random.RandomState(seed).standard_normal(shape).astype("float32")


def operands(queries=QUERIES, keys=KEYS, groups=GROUPS):
  return draw(0, BATCH, queries, HEADS, SIZE), draw(1, BATCH, keys, groups, SIZE), draw(2, BATCH, keys, groups, SIZE)


def mask(*leading):
  """A mask that keeps half of all keys; the fourth query sees none."""
  seen = np.random.RandomState(3).rand(*leading, QUERIES, KEYS) < 0.5
  seen[..., 3, :] = False
  return seen


def padding():
  """A bias that hides the first keys by -inf: the first queries of a causal program see no others."""
  bias = draw(4, BATCH, 1, 1, KEYS)
  bias[..., :5] = -np.inf
  return bias


LENGTHS = np.array([60, 41], "int32")
OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "window": {"local_window_size": (20, 3)},
    "window that leaves queries without keys": {"local_window_size": (0, 0)},
    "causal window": {"local_window_size": (9, 0), "is_causal": True},
    "mask of batches": {"mask": mask(BATCH, 1)},
    "mask of heads, causal": {"mask": mask(1, HEADS), "is_causal": True},
    "lengths": {"query_seq_lengths": LENGTHS, "key_value_seq_lengths": LENGTHS},
    "lengths of keys, causal": {"key_value_seq_lengths": LENGTHS, "is_causal": True},
    "bias": {"bias": draw(5, 1, HEADS, QUERIES, KEYS)},
    "bias of all": {"bias": draw(5, BATCH, HEADS, QUERIES, KEYS)},
    "bias, causal": {"bias": draw(5, 1, HEADS, QUERIES, KEYS), "is_causal": True},
    "bias that hides, causal": {"bias": padding(), "is_causal": True},
    "bias and mask": {"bias": draw(5, BATCH, 1, 1, KEYS), "mask": mask(BATCH, 1)},
}


def attention(library, options):
  arrays = {name: library.numpy.asarray(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
  return lambda *x: library.nn.dot_product_attention(*x, **arrays)


def gradient(library, function, weights):
  def loss(*x):
    return (function(*x).astype("float32") * library.numpy.asarray(weights)).sum()
  return lambda *x: library.grad(loss, tuple(range(len(x))))(*x)


def compiled(function, *arrays, folder):
  """The results under jit, and the text of the compiled program."""
  results = jax.jit(function, compiler_options={"xla_dump_to": str(folder)})(*arrays)
  last = {path.parent: path for path in sorted(folder.glob("*/*-fuse.txt"))}
  return results, "\n".join(path.read_text() for path in last.values())


def whole(text):
  """The part that runs in every call: without loops and branches, in which unusual calls compute the definition."""
  text = re.sub(r"(?ms)^let jaxpr\d* = \{.*?^  in [^\n]*\} in$", "", text)
  return "\n".join(line for line in text.splitlines() if not line.startswith(" " * 6))


def close(got, want, tolerance):
  for a, b in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    a, b = np.asarray(a).astype("float32"), np.asarray(b).astype("float32")
    scale = np.abs(b[np.isfinite(b)]).max(initial=1)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("name", OPTIONS)
def test_attention_has_the_values_of_jax_and_runs_fused(name, dtype, tolerance, tmp_path):
  arrays = operands()
  got, text = compiled(attention(jax, OPTIONS[name]), *(jnp.asarray(x, dtype) for x in arrays), folder=tmp_path)
  want = oracle.jit(attention(oracle, OPTIONS[name]))(*(oracle.numpy.asarray(x, dtype) for x in arrays))
  close(got, want, tolerance)
  assert "flash_attention[" in whole(text) and " exp " not in whole(text)
  positions_alone = not {"mask", "bias", "query_seq_lengths", "key_value_seq_lengths"} & set(OPTIONS[name])
  assert ("mask=True" in text or "bias=True" in text) != positions_alone


@pytest.mark.parametrize("dtype,tolerance", [("float32", 2e-5), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_of_attention_are_those_of_jax(name, dtype, tolerance, tmp_path):
  arrays, weights = operands(), draw(6, BATCH, QUERIES, HEADS, SIZE)
  got, text = compiled(gradient(jax, attention(jax, OPTIONS[name]), weights), *(jnp.asarray(x, dtype) for x in arrays),
                       folder=tmp_path)
  want = oracle.jit(gradient(oracle, attention(oracle, OPTIONS[name]), weights))(
      *(oracle.numpy.asarray(x, dtype) for x in arrays))
  close(got, want, tolerance)
  # The log-sum-exp does not determine the result of a row hidden by both a bias and a condition: it stays written out.
  hidden_twice = "bias" in OPTIONS[name] and len(OPTIONS[name]) > 1
  assert ("flash_attention_grad[" in text) != hidden_twice


@pytest.mark.parametrize("shape", [(BATCH, HEADS, QUERIES, KEYS), (1, HEADS, QUERIES, KEYS), (BATCH, 1, 1, KEYS), (QUERIES, KEYS)])
def test_the_bias_has_its_gradient(shape, tmp_path):
  def attend(library):
    return lambda q, k, v, bias: library.nn.dot_product_attention(q, k, v, bias)
  arrays, weights = (*operands(), draw(7, *shape)), draw(6, BATCH, QUERIES, HEADS, SIZE)
  got, text = compiled(gradient(jax, attend(jax), weights), *(jnp.asarray(x) for x in arrays), folder=tmp_path)
  close(got, oracle.jit(gradient(oracle, attend(oracle), weights))(*arrays), 2e-5)
  assert "flash_attention_grad[" in text


@pytest.mark.parametrize("queries,keys", [(1, 90), (1, 5), (3, 700), (5, 1), (1, 1)])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"key_value_seq_lengths": np.array([0, 1], "int32")}])
def test_short_queries_and_keys_keep_their_values(queries, keys, options):
  arrays = operands(queries, keys)
  got = jax.jit(attention(jax, options))(*(jnp.asarray(x) for x in arrays))
  close(got, oracle.jit(attention(oracle, options))(*arrays), 1e-5)


def test_the_residual_is_that_of_jax():
  for options in ({}, {"is_causal": True}, {"mask": mask(BATCH, 1)}):
    options = {**options, "return_residual": True}
    got = jax.jit(attention(jax, options))(*(jnp.asarray(x) for x in operands()))
    close(got, oracle.jit(attention(oracle, options))(*operands()), 1e-5)


# --- text ----------------------------------------------------------------------------------------------------------------


def text_of(library, function, arrays):
  text = str(library.make_jaxpr(function)(*(library.numpy.asarray(x) for x in arrays)))
  return re.sub(r"\s+", "", re.sub(r"np\.int64\((\d+)\)", r"\1", text))


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("name", [name for name in OPTIONS if "window" not in name])
def test_the_program_prints_as_in_jax(name, groups):
  arrays, weights = operands(groups=groups), draw(6, BATCH, QUERIES, HEADS, SIZE)
  for library_of in (lambda library: attention(library, OPTIONS[name]),
                     lambda library: gradient(library, attention(library, OPTIONS[name]), weights)):
    assert text_of(jax, library_of(jax), arrays) == text_of(oracle, library_of(oracle), arrays)


# --- other programs ------------------------------------------------------------------------------------------------------


def written_out(library, q, k, v, causal=True):
  """[batch, heads, length, size], as programs write it by hand; hidden logits are -inf."""
  np_ = library.numpy
  logits = np_.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
  if causal:
    logits = np_.where(np_.tril(np_.ones(logits.shape[-2:], bool)), logits, -np_.inf)
  return np_.einsum("bhqk,bhkd->bhqd", library.nn.softmax(logits, axis=-1), v)


def shared_keys(library, q, k, v):
  """One head of keys and values for all heads of queries."""
  np_ = library.numpy
  logits = 0.25 * np_.einsum("bqhd,bkd->bhqk", q, k)
  return np_.einsum("bhqk,bkd->bqhd", library.nn.softmax(logits, axis=-1), v)


HAND = {
    "heads first": (written_out, [(2, 3, 80, 16)] * 3),
    "no mask": (lambda library, *x: written_out(library, *x, causal=False), [(2, 3, 80, 16), (2, 3, 96, 16), (2, 3, 96, 16)]),
    "one head of keys": (shared_keys, [(2, 80, 4, 16), (2, 96, 16), (2, 96, 16)]),
}


@pytest.mark.parametrize("name", HAND)
@pytest.mark.parametrize("derivative", [False, True])
def test_attention_written_by_hand_runs_fused(name, derivative, tmp_path):
  function, shapes = HAND[name]
  arrays = [draw(i, *shape) for i, shape in enumerate(shapes)]

  def program(library):
    own = lambda *x: function(library, *x)
    return gradient(library, own, draw(8, *shapes[0])) if derivative else own
  got, text = compiled(program(jax), *(jnp.asarray(x) for x in arrays), folder=tmp_path)
  close(got, oracle.jit(program(oracle))(*arrays), 2e-5)
  assert ("flash_attention_grad[" if derivative else "flash_attention[") in text


def test_rows_without_keys_are_nan_where_hidden_logits_are_minus_infinity(tmp_path):
  def program(library):
    np_, seen = library.numpy, library.numpy.asarray(mask())

    def attend(q, k, v):
      logits = np_.where(seen, np_.einsum("bhqd,bhkd->bhqk", q, k), -np_.inf)
      return np_.einsum("bhqk,bhkd->bhqd", library.nn.softmax(logits, axis=-1), v)
    return lambda *x: (attend(*x), gradient(library, attend, draw(8, 2, 3, QUERIES, 16))(*x))
  arrays = draw(0, 2, 3, QUERIES, 16), draw(1, 2, 3, KEYS, 16), draw(2, 2, 3, KEYS, 16)
  got, text = compiled(program(jax), *(jnp.asarray(x) for x in arrays), folder=tmp_path)
  close(got, oracle.jit(program(oracle))(*arrays), 2e-5)
  assert "flash_attention_grad[" in text


def test_transforms_run_fused(tmp_path):
  arrays = [draw(i, 3, 2, 80, 4, 16) for i in range(3)]

  def program(library):
    attend = lambda *x: library.nn.dot_product_attention(*x, is_causal=True)
    remat = library.checkpoint(lambda *x: library.numpy.sin(attend(*x)))
    return library.vmap(library.grad(library.jit(lambda *x: (remat(*x) ** 2).sum()), (0, 1, 2)))
  got, text = compiled(program(jax), *(jnp.asarray(x) for x in arrays), folder=tmp_path)
  close(got, oracle.jit(program(oracle))(*arrays), 2e-5)
  assert "flash_attention_grad[" in text and " exp " not in whole(text)


def test_a_loop_over_layers_runs_fused(tmp_path):
  arrays = operands(80, 80, HEADS)

  def program(library):
    step = lambda x, _: (library.nn.dot_product_attention(x, x, x, is_causal=True), None)
    return lambda q, k, v: library.lax.scan(step, q + k + v, None, length=3)[0]
  got, text = compiled(program(jax), *(jnp.asarray(x) for x in arrays), folder=tmp_path)
  close(got, oracle.jit(program(oracle))(*arrays), 1e-5)
  assert "flash_attention[" in text


def test_probabilities_that_are_read_stay_written_out(tmp_path):
  def program(library):
    def attend(q, k, v):
      shares = library.nn.softmax(library.numpy.einsum("bhqd,bhkd->bhqk", q, k), axis=-1)
      return library.numpy.einsum("bhqk,bhkd->bhqd", shares, v), shares
    return attend
  arrays = [draw(i, 2, 3, 80, 16) for i in range(3)]
  got, text = compiled(program(jax), *(jnp.asarray(x) for x in arrays), folder=tmp_path)
  close(got, oracle.jit(program(oracle))(*arrays), 1e-5)
  assert "flash_attention" not in text


# --- programs close to the pattern ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 64, 4, 32), (2, 0, 4, 32)])
def test_arrays_without_elements_have_the_shapes_of_jax(shape):
  def program(library):
    attend = lambda x: library.nn.dot_product_attention(x, x, x)
    return lambda x: (attend(x), library.grad(lambda y: attend(y).sum())(x))
  got, want = jax.jit(program(jax))(jnp.zeros(shape)), oracle.jit(program(oracle))(oracle.numpy.zeros(shape))
  assert [x.shape for x in got] == [x.shape for x in want]


@pytest.mark.parametrize("queries,keys", [(0, 128), (128, 0), (0, 0)])
def test_no_queries_and_no_keys_are_as_in_jax(queries, keys):
  def program(library):
    attend = lambda q, k, v: library.nn.softmax(q @ k.T) @ v
    return lambda *x: (attend(*x), library.grad(lambda *y: attend(*y).sum(), (0, 1, 2))(*x))
  arrays = draw(0, queries, 64), draw(1, keys, 64), draw(2, keys, 64)
  got, want = jax.jit(program(jax))(*arrays), oracle.jit(program(oracle))(*arrays)
  for a, b in zip(jax.tree.leaves(got), oracle.tree.leaves(want), strict=True):
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("size", [40, 42])
@pytest.mark.parametrize("argnums", [0, 1, 2, (0, 1, 2)])
@pytest.mark.parametrize("equation", ["bhqk,bkhd->bqd", "bhqk,bkhd->bhd", "bhqk,bkhd->hqd"])
def test_sums_over_heads_queries_and_batches_have_the_gradient_of_jax(equation, argnums, size):
  weights = draw(3, *(dict(b=2, h=3, q=40, d=size)[axis] for axis in equation.split(">")[1]))

  def program(library):
    def loss(q, k, v):
      shares = library.nn.softmax(library.numpy.einsum("bqhd,bkhd->bhqk", q, k))
      return (library.numpy.einsum(equation, shares, v) * weights).sum()
    return library.grad(loss, argnums)
  arrays = [draw(i, 2, 40, 3, size) for i in range(3)]
  close(jax.jit(program(jax))(*(jnp.asarray(x) for x in arrays)), oracle.jit(program(oracle))(*arrays), 3e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "float16"])
def test_positions_that_their_type_does_not_hold_are_as_in_jax(dtype):
  length = 300 if dtype != "float16" else 2100

  def program(library):
    own = library.lax.iota(dtype, length)
    return lambda q, k, v: library.nn.softmax(library.numpy.where(own[:, None] >= own, q @ k.T, -1e30)) @ v
  arrays = [draw(i, length, 16) for i in range(3)]
  close(jax.jit(program(jax))(*(jnp.asarray(x) for x in arrays)), program(oracle)(*arrays), 3e-5)


@pytest.mark.parametrize("derivative", [False, True])
def test_logits_that_overflow_float16_are_as_in_jax(derivative):
  def program(library):
    attend = lambda q, k, v: library.nn.softmax((q @ k.T).astype("float32")).astype("float16") @ v
    return gradient(library, attend, draw(8, 128, 64)) if derivative else attend
  for factor in (0.5, 300):
    arrays = [(factor * draw(i, 128, 64)).astype("float16") for i in range(2)] + [draw(2, 128, 64).astype("float16")]
    got, want = jax.jit(program(jax))(*(jnp.asarray(x) for x in arrays)), oracle.jit(program(oracle))(*arrays)
    close(got, want, 1e-2)


# A NaN among the values, in blocks that queries see and in blocks that they do not: 0 times NaN is NaN.
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["causal", "causal window", "lengths of keys, causal", "bias, causal", "mask of batches"])
def test_nan_and_infinite_values_are_where_jax_has_them(name, value):
  for at in (0, 41, KEYS - 1):
    q, k, v = operands()
    v[1, at, 0, 3] = value
    got = jax.jit(attention(jax, OPTIONS[name]))(*(jnp.asarray(x) for x in (q, k, v)))
    close(got, oracle.jit(attention(oracle, OPTIONS[name]))(q, k, v), 1e-5)


def temporaries(length, derivative):
  x = jax.ShapeDtypeStruct((1, length, 8, 64), "float32")
  attend = lambda *y: jax.nn.dot_product_attention(*y, is_causal=True)
  function = jax.grad(lambda *y: (attend(*y) ** 2).sum(), (0, 1, 2)) if derivative else attend
  return jax.jit(function).lower(x, x, x).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("derivative", [False, True])
def test_memory_grows_with_the_length(derivative):
  short, long = (temporaries(length, derivative) for length in (1024, 4096))
  assert long <= 4.1 * short
  assert long < 0.15 * 8 * 4096 * 4096 * 4
