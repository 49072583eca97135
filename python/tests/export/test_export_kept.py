"""Exports that leave out arguments, take keys, or have integers: after serialization they match jax's exports."""
import jax as oracle
import jax.export as oracle_export
import numpy as np
import pytest

import capibara.jax as jax
from capibara import _core
from capibara.jax import export

X, I = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.int32)
FUNCTIONS = {
    "a multiple": lambda jax: lambda x: x * 2,
    "a sum with a constant": lambda jax: lambda x: x + np.float32(3),
    "a reshape": lambda jax: lambda x: x.reshape(3, 1),
    "chosen elements": lambda jax: lambda x: x[np.array([1, -1])],
    "a conversion": lambda jax: lambda x: x.astype("bfloat16"),
    "a constant beside it": lambda jax: lambda x: (jax.numpy.arange(3.0), x),
    "a sine": lambda jax: jax.numpy.sin,
    "an integer result": lambda jax: lambda x: (x * 2, jax.numpy.argmax(x)),
    "an argument that is not read": lambda jax: lambda x, y: y * 2,
    "an integer argument": lambda jax: lambda x, i: x * i,
    "an integer argument that is added": lambda jax: lambda x, i: x + i,
    "a key": lambda jax: lambda x, key: x * jax.random.normal(key, (3,)),
    "a key whose draw is added": lambda jax: lambda x, key: x + jax.random.normal(key, (3,)),
    "several keys": lambda jax: lambda x, key: x * jax.random.normal(jax.random.split(key, 2)[1], (3,)),
    "keys as results": lambda jax: lambda x, key: (x * 2, jax.random.split(key, 3)),
    "a key handed on": lambda jax: lambda x, key: (x * 2, key),
}


def arguments(name, jax, kind):
  if "key" in name:
    return X, jax.random.key(7, impl=kind)
  return (X, I) if "integer argument" in name else (X, X) if "not read" in name else (X,)


def plain(jax, values):
  """Values in a form that both libraries share: keys as their words, float0 by its shape."""
  leaves = jax.tree.leaves(values)
  words = [jax.random.key_data(x) if "key" in str(x.dtype) else x for x in leaves]
  return [np.shape(x) if x.dtype == jax.dtypes.float0 else np.asarray(x, np.float64) for x in words]


def facts(exported):
  return exported.module_kept_var_idx, str(exported.in_avals), str(exported.out_avals)


def results(jax, exported, args):
  def total(*args):
    parts = jax.tree.leaves(exported.call(*args))
    return sum(part.astype("float32").sum() for part in parts if jax.numpy.issubdtype(part.dtype, jax.numpy.floating))
  argnums = tuple(range(len(args)))
  return plain(jax, [exported.call(*args), jax.grad(total, argnums, allow_int=True)(*args),
                     jax.jit(jax.grad(total, allow_int=True))(*args)])


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bytes_keep_values_derivatives_and_kept_arguments(name, kind):
  if "key" not in name and kind != "rbg":
    pytest.skip("it has no key")
  args = arguments(name, oracle, kind)
  direct = oracle_export.export(oracle.jit(FUNCTIONS[name](oracle)))(*args)
  expected = results(oracle, direct, args)
  args = arguments(name, jax, kind)
  own = export.export(jax.jit(FUNCTIONS[name](jax)))(*args)
  for exported in (own, export.deserialize(own.serialize(vjp_order=1)), export.deserialize(own.serialize(vjp_order=2))):
    assert facts(exported) == facts(direct) and facts(exported.vjp()) == facts(direct.vjp())
    for ours, theirs in zip(results(jax, exported, args), expected, strict=True):
      np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_second_derivatives_are_kept_where_the_first_does_not_read_its_argument():
  read = export.deserialize(export.export(jax.jit(lambda x: x * x))(X).serialize(vjp_order=2))
  slope = jax.grad(lambda x: read.call(x).sum())
  np.testing.assert_allclose(jax.grad(lambda x: slope(x).sum())(X), [2, 2, 2])


def test_bytes_whose_text_takes_other_arguments_are_refused():
  facts = _core.read_exported(bytes(export.export(jax.jit(lambda x, y: y * 2))(X, X).serialize()))
  assert facts["kept"] == [1]
  with pytest.raises(ValueError, match="export.deserialize: the program maps 1 arguments"):
    export.deserialize(_core.write_exported({**facts, "kept": [0, 1]}))
  with pytest.raises(ValueError, match="expected the numbers of the arguments that it keeps in order"):
    export.deserialize(_core.write_exported({**facts, "kept": [2]}))
