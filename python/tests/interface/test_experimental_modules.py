"""Small modules of jax.experimental, and scaled dot products: against jax, or against jax's documentation."""
import jax as oracle
import numpy as np
import pytest
from jax.experimental import rnn as oracle_rnn
from jax.experimental.compute_on import compute_on as oracle_compute_on

import capibara.jax as jax
from capibara.jax import numpy as jnp
from capibara.jax.experimental import rnn, serialize_executable
from capibara.jax.experimental.compute_on import compute_on, compute_on2
from capibara.jax.experimental.xla_metadata import set_xla_metadata


@pytest.mark.parametrize("layers, bidirectional", [(1, False), (2, False), (2, True)])
def test_lstm_computes_what_jax_does_with_the_same_weights(layers, bidirectional):
  sizes = dict(input_size=3, hidden_size=4, num_layers=layers, bidirectional=bidirectional)
  generator, units = np.random.default_rng(0), layers * (2 if bidirectional else 1)
  x, lengths = generator.normal(size=(2, 5, 3)).astype(np.float32), np.array([3, 5], np.int32)
  h, c = generator.normal(size=(2, units, 2, 4)).astype(np.float32)
  weights = np.asarray(oracle_rnn.init_lstm_weight(oracle.random.key(1), **sizes))
  np.testing.assert_allclose(rnn.init_lstm_weight(jax.random.key(1), **sizes), weights, rtol=1e-6)
  np.testing.assert_array_equal(rnn.swap_lstm_gates(weights, **sizes), oracle_rnn.swap_lstm_gates(weights, **sizes))
  expected = oracle_rnn.lstm_ref(x, h, c, *oracle_rnn.unpack_lstm_weights(weights, **sizes), lengths, 3, 4, layers, 0.0, bidirectional)
  got = rnn.lstm(x, h, c, jnp.asarray(weights), jnp.asarray(lengths), 3, 4, layers, 0.0, bidirectional)
  for mine, theirs in zip(got, expected):
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_lstm_has_the_gradient_of_jaxs_reference():
  sizes = (3, 4, 1, True)
  weights = np.asarray(oracle_rnn.init_lstm_weight(oracle.random.key(1), *sizes))
  x, zeros, lengths = np.ones((2, 5, 3), np.float32), np.zeros((2, 2, 4), np.float32), np.array([3, 5], np.int32)

  def theirs(w):
    parts = oracle_rnn.unpack_lstm_weights(w, *sizes)
    return oracle_rnn.lstm_ref(x, zeros, zeros, *parts, lengths, 3, 4, 1, 0.0, True)[0].sum()

  def mine(w):
    return rnn.lstm(x, zeros, zeros, w, jnp.asarray(lengths), 3, 4, 1, 0.0, True)[0].sum()

  np.testing.assert_allclose(jax.grad(mine)(weights), oracle.grad(theirs)(weights), rtol=1e-4, atol=1e-5)


def test_lstm_refuses_dropout_and_other_lengths():
  sizes = (3, 4, 1, False)
  arguments = [jnp.ones((2, 5, 3)), jnp.zeros((1, 2, 4)), jnp.zeros((1, 2, 4)), rnn.init_lstm_weight(jax.random.key(0), *sizes)]
  with pytest.raises(NotImplementedError, match="dropout"):
    rnn.lstm(*arguments, jnp.array([5, 5]), 3, 4, 1, 0.5, False)
  with pytest.raises(NotImplementedError, match="int32"):
    rnn.lstm(*arguments, jnp.array([5., 5.]), 3, 4, 1, 0.0, False)


@pytest.mark.parametrize("module, on", [(jax, compute_on), (oracle, oracle_compute_on)], ids=["capibara", "jax"])
def test_compute_on_is_a_context_and_a_decorator_of_known_types(module, on):
  @on("device_host")
  @module.jit
  def double(x):
    return x * 2

  with on("device_host"):
    assert float(module.numpy.sin(0.0)) == 0
  assert float(double(3.0)) == 6
  with pytest.raises(ValueError, match="Invalid compute type elsewhere"):
    on("elsewhere").__enter__()
  with pytest.raises(TypeError, match="must be a string"):
    on(3).__enter__()


def test_compute_on2_puts_results_in_memory_spaces():
  host, device = compute_on2(lambda x: (x + 1, x * 2), compute_type="device_host",
                             out_memory_spaces=(jax.memory.Space.Host, jax.memory.Space.Device))(jnp.arange(3.))
  np.testing.assert_array_equal(host, [1, 2, 3])
  np.testing.assert_array_equal(device, [0, 2, 4])
  assert host.sharding.memory_kind != device.sharding.memory_kind


def test_metadata_for_xla_leaves_values_as_they_are():
  with set_xla_metadata(a=1):
    x = jnp.arange(3.)
  tagged = set_xla_metadata({"x": x}, key="value", flag=True)
  np.testing.assert_array_equal(tagged["x"], x)
  decorated = set_xla_metadata(_xla_scope=1)(jax.jit(lambda y: y + 1))
  assert float(decorated(1.0)) == 2 and decorated.lower(1.0).as_text()
  assert float(jax.grad(lambda y: set_xla_metadata(y, key="value") ** 2)(3.0)) == 6


def test_compiled_functions_are_written_and_loaded():
  compiled = jax.jit(lambda x, y, *, k: {"a": x @ y + k["c"], "b": (x * 2,)}, donate_argnums=0).lower(
    jnp.ones((2, 3)), jnp.ones((3, 2)), k={"c": jnp.float32(1)}).compile()
  payload, in_tree, out_tree = serialize_executable.serialize(compiled)
  assert isinstance(payload, bytes)
  loaded = serialize_executable.deserialize_and_load(payload, in_tree, out_tree)
  x = jnp.arange(6.).reshape(2, 3)
  out = loaded(x, jnp.ones((3, 2)), k={"c": jnp.float32(1)})
  np.testing.assert_array_equal(out["a"], [[4, 4], [13, 13]])
  np.testing.assert_array_equal(out["b"][0], [[0, 2, 4], [6, 8, 10]])
  assert x.is_deleted()
  with pytest.raises(TypeError):
    loaded(jnp.ones(3), jnp.ones((3, 2)), k={"c": jnp.float32(1)})


def test_other_things_are_neither_written_nor_loaded():
  with pytest.raises(ValueError, match="does not support serialization"):
    serialize_executable.serialize(jax.jit(lambda x: x))
  tree = jax.tree.structure(((1,), {}))
  for payload in (b"", b"[]", b"\xff\x00", b"{}"):
    with pytest.raises(ValueError, match="were not written by serialize"):
      serialize_executable.deserialize_and_load(payload, tree, jax.tree.structure(1))


def small_floats(shape, seed, kind):
  return np.random.default_rng(seed).normal(size=shape).astype(np.float32).astype(kind)


def test_scaled_dot_is_jaxs():
  import ml_dtypes
  lhs, rhs = small_floats((2, 4, 64), 0, ml_dtypes.float8_e4m3fn), small_floats((2, 64, 3), 1, ml_dtypes.float8_e4m3fn)
  left, right = 2.0 ** np.arange(16).reshape(2, 4, 2), 2.0 ** -np.arange(12).reshape(2, 2, 3)
  left, right = left.astype(ml_dtypes.float8_e8m0fnu), right.astype(ml_dtypes.float8_e8m0fnu)
  for kind in (None, np.float32):
    mine, theirs = (module.lax.scaled_dot(lhs, rhs, lhs_scale=left, rhs_scale=right, preferred_element_type=kind)
                    for module in (jax, oracle))
    assert mine.dtype == theirs.dtype
    np.testing.assert_allclose(np.asarray(mine, np.float32), np.asarray(theirs, np.float32), rtol=1e-2)
  with pytest.raises(TypeError, match="LHS dim 1 of size 4 does not match scale dim size 3"):
    jax.lax.scaled_dot(lhs, rhs, lhs_scale=left[:, :3])
  with pytest.raises(TypeError, match="must be at least 2"):
    jax.lax.scaled_dot(lhs, rhs, lhs_scale=np.ones((2, 4, 64), ml_dtypes.float8_e8m0fnu))


def test_scaled_matmul_is_the_matmul_of_scaled_operands():
  a, b = small_floats((2, 4, 6), 0, np.float32), small_floats((2, 3, 6), 1, np.float32)
  left, right = small_floats((2, 4, 2), 2, np.float32), small_floats((2, 3, 2), 3, np.float32)
  expected = np.einsum("bmk,bnk->bmn", a.astype(np.float64) * np.repeat(left, 3, -1), b.astype(np.float64) * np.repeat(right, 3, -1))
  np.testing.assert_allclose(jax.nn.scaled_matmul(a, b, left, right), expected, rtol=1e-5, atol=1e-5)
  assert jax.nn.scaled_matmul(a, b, left, right, jnp.bfloat16).dtype == jnp.bfloat16
  for wrong in [(a[0], b, left, right), (a, b[..., :5], left, right), (a, b, left[:, :3], right), (a, b, left[..., :1], right)]:
    with pytest.raises(ValueError) as mine:
      jax.nn.scaled_matmul(*wrong)
    with pytest.raises(ValueError) as theirs:
      oracle.nn.scaled_matmul(*wrong)
    assert str(mine.value) == str(theirs.value)
