"""Generators of random bits other than the library's three: philox, threefry of four words, and those of users, as in jax."""
import importlib

import jax as oracle
import numpy as np
import pytest

import capibara.jax as jax

IMPLS = ["philox2x32", "philox4x32", "threefry4x32"]
DRAWS = [("bits", ((3,),)), ("bits", ((3,), "uint8")), ("uniform", ((2, 2),)), ("normal", ((4,),)), ("randint", ((3,), 0, 100)),
         ("permutation", (6,)), ("choice", (10, (3,))), ("categorical", (np.zeros(5, np.float32),)), ("exponential", ((2,),)),
         ("bernoulli", (0.3, (4,))), ("truncated_normal", (-1.0, 1.0, (2,)))]
# Draws by rejection, whose loops jax compiles for seconds: each with one of the generators.
LOOPS = [("gamma", (1.5, (2,))), ("gamma", (np.float32([0.3, 8]),)), ("loggamma", (0.1, (2,))), ("beta", (2.0, 0.5, (2,))),
         ("binomial", (10.0, 0.3, (3,)))]
CASES = [(impl, *draw) for draw in DRAWS for impl in IMPLS] + [(IMPLS[i % 3], *draw) for i, draw in enumerate(LOOPS)]


def words(module, keys):
  return np.asarray(module.random.key_data(keys))


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_have_jaxs_words(impl):
  def facts(module):
    key = module.random.key(7, impl=impl)
    keys = module.random.split(key, (2, 3))
    batched = module.vmap(lambda k, i: module.random.fold_in(k, i), in_axes=(0, None))(keys[1], 4)
    return (str(key.dtype), key.shape, module.random.key_impl(key), repr(key), keys.shape, words(module, keys).tolist(),
            words(module, module.random.fold_in(key, 5)).tolist(), words(module, batched).tolist(),
            words(module, keys.reshape(3, 2)[1:, 0]).tolist(), [words(module, k).tolist() for k in keys[0]],
            words(module, module.jit(lambda seed: module.random.key(seed, impl=impl))(-1)).tolist(),
            words(module, module.lax.fori_loop(0, 3, lambda i, k: module.random.split(k)[0], key)).tolist(),
            words(module, module.random.wrap_key_data(module.random.key_data(keys), impl=impl)).shape)
  assert facts(jax) == facts(oracle)


@pytest.mark.parametrize("impl, name, args", CASES, ids=[f"{impl}-{name}{i}" for i, (impl, name, _) in enumerate(CASES)])
def test_draws_are_jaxs(impl, name, args):
  def drawn(module):
    key = module.random.key(3, impl=impl)
    draw = lambda k: getattr(module.random, name)(k, *args)  # noqa: E731
    return np.asarray(draw(key)), np.asarray(module.jit(draw)(key))
  ours, jitted = drawn(jax)
  theirs = drawn(oracle)[0]
  assert ours.dtype == theirs.dtype
  np.testing.assert_allclose(ours, theirs, rtol=2e-5)
  np.testing.assert_allclose(jitted, theirs, rtol=2e-5)


def test_gamma_variates_have_the_derivative_of_their_quantile():
  key, theirs = jax.random.key(3, impl="philox4x32"), oracle.random.key(3, impl="philox4x32")
  for name in ("gamma", "loggamma"):
    gradient = jax.grad(lambda a: getattr(jax.random, name)(key, a))(1.5)
    np.testing.assert_allclose(gradient, oracle.grad(lambda a: getattr(oracle.random, name)(theirs, a))(1.5), rtol=1e-4)


def counting(module):
  """A generator of a user: bits that count up from the key's first word."""
  jnp = module.numpy
  return importlib.import_module(f"{module.__name__}.extend.random").define_prng_impl(
      key_shape=(2, 1), name="counting", tag="cnt",
      seed=lambda seed: jnp.stack([seed.astype(jnp.uint32), jnp.uint32(1)]).reshape(2, 1),
      split=lambda words, shape: words + jnp.arange(np.prod(shape), dtype=jnp.uint32).reshape(*shape, 1, 1),
      random_bits=lambda words, width, shape: (words[0, 0] + jnp.arange(np.prod(shape), dtype=jnp.uint32)).reshape(shape).astype(
          f"uint{width}"),
      fold_in=lambda words, data: words * data.astype(jnp.uint32))


def test_users_define_generators():
  def facts(module):
    impl = counting(module)
    key = module.random.key(40, impl=impl)
    assert key.dtype == module.random.key_dtype(impl) and module.random.key_impl(key) == impl
    assert module.random.key(40, dtype=key.dtype).dtype == key.dtype
    draws = module.vmap(lambda k: module.random.bits(k, (2,)))(module.random.split(key, 3))
    return (repr(impl), str(key.dtype), words(module, key).tolist(), words(module, module.random.fold_in(key, 2)).tolist(),
            np.asarray(draws).tolist(), np.asarray(module.random.randint(key, (3,), 0, 1000)).tolist(),
            np.asarray(module.random.uniform(key, (2,))).tolist())
  assert facts(jax) == facts(oracle)


def test_mistakes_name_what_was_expected():
  key = jax.random.key(0, impl="philox2x32")
  with pytest.raises(ValueError, match='unrecognized PRNG implementation "philox". Did you mean one of: .*"philox2x32"'):
    jax.random.key(0, impl="philox")
  with pytest.raises(TypeError, match="expected key_data.shape to end with"):
    jax.random.wrap_key_data(np.zeros(3, np.uint32), impl="philox4x32")
  with pytest.raises(TypeError, match="expected key_data.dtype = uint32"):
    jax.random.wrap_key_data(np.zeros(2, np.int32), impl="philox4x32")
  with pytest.raises(ValueError, match="accepts a single key, but was given a key array of shape"):
    jax.random.split(jax.random.split(key))
  with pytest.raises(TypeError, match="key accepts a scalar"):
    jax.random.key(np.arange(3), impl="philox2x32")
  with pytest.raises(TypeError, match="cannot be converted to a NumPy array"):
    np.asarray(key)
  with pytest.raises(TypeError, match="add does not accept dtypes key<phx2>, int32"):
    key + 1
  with pytest.raises(TypeError, match="missing 1 required"):
    jax.random.uniform()


@pytest.mark.parametrize("key, counter, expected", [  # known answers of Random123, tests/kat_vectors
    ([0, 0], [0, 0], [0x6B200159, 0x99BA4EFE]), ([0xFFFFFFFF] * 2, [0xFFFFFFFF] * 2, [0x1CB996FC, 0xBB002BE7]),
    ([0x13198A2E, 0x03707344], [0x243F6A88, 0x85A308D3], [0xC4923A9C, 0x483DF7A0])])
def test_threefry_blocks_are_the_published_ones(key, counter, expected):
  block = importlib.import_module("capibara.jax.extend.random").threefry_2x32
  assert np.asarray(block(np.uint32(key), np.uint32(counter))).tolist() == expected


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_generators_are_named_in_several_forms(module):
  assert str(module.random.key(1, dtype="rbg").dtype) == str(module.random.key(1, impl="rbg").dtype) == "key<rbg>"
  assert str(module.random.wrap_key_data(np.zeros(2, np.uint32), dtype="threefry2x32").dtype) == "key<fry>"
  with pytest.raises(TypeError, match="unrecognized type .* PRNG"):
    module.random.key(0, impl=object())
  with pytest.raises(ValueError, match="Cannot specify both"):
    module.random.key(0, impl="philox2x32", dtype=module.random.key_dtype("rbg"))
