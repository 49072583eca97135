"""jax.export: exported programs, called, differentiated, and serialized."""
import collections

import jax as oracle
import jax.export as oracle_export
import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _core
from capibara.jax import export
from capibara.jax._programs import eval_jaxpr

PEERS = [pytest.param((jax, export), id="capibara"), pytest.param((oracle, oracle_export), id="jax")]
X, Y = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones((4, 2), np.float32)


def outputs(x, y):
  return {"s": x @ y, "t": (x.sum(),)}


@pytest.mark.parametrize("peer", PEERS)
def test_an_exported_function_says_what_it_takes_and_gives(peer):
  module, exports = peer
  exported = exports.export(module.jit(outputs))(module.ShapeDtypeStruct((3, 4), np.float32), Y)
  assert (exported.fun_name, exported.nr_devices, exported.platforms) == ("outputs", 1, ("cpu",))
  assert str(exported.in_tree) == "PyTreeDef(((*, *), {}))" and str(exported.out_tree) == "PyTreeDef({'s': *, 't': (*,)})"
  assert str(exported.in_avals) == "(ShapedArray(float32[3,4]), ShapedArray(float32[4,2]))"
  assert str(exported.out_avals) == "(ShapedArray(float32[3,2]), ShapedArray(float32[]))"
  assert exported.has_vjp() and not exported.uses_global_constants and "stablehlo.dot_general" in exported.mlir_module()
  found = exported.call(X, Y)
  np.testing.assert_allclose(found["s"], X @ Y)
  np.testing.assert_allclose(module.grad(lambda x: exported.call(x, Y)["s"].sum())(X), np.full((3, 4), 2.0))


@pytest.mark.parametrize("peer", PEERS)
def test_calls_that_do_not_match_are_refused(peer):
  module, exports = peer
  exported = exports.export(module.jit(outputs))(X, Y)
  for args, message in (((X[:, :3], Y), r"Shape mismatch for args\[0\].shape\[1\]"), ((X[None], Y), r"Rank mismatch for args\[0\]"),
                        ((X.astype(np.int32), Y), r"Dtype mismatch for args\[0\]: expected float32"), ((X,), "same pytree structure")):
    with pytest.raises(ValueError, match=message):
      exported.call(*args)
  with pytest.raises(ValueError, match="must be the result of `jit`"):
    exports.export(outputs)
  with pytest.raises(ValueError, match="exported for platforms"):
    exports.export(module.jit(outputs), platforms=("tpu",))(X, Y).call(X, Y)


def test_a_program_is_the_same_after_it_was_bytes():
  exported = export.export(jax.jit(outputs))(X, Y)
  read = export.deserialize(exported.serialize(vjp_order=2))
  assert (read.in_tree, read.out_tree) == (exported.in_tree, exported.out_tree)
  assert (read.in_avals, read.out_avals) == (exported.in_avals, exported.out_avals)
  np.testing.assert_array_equal(read.call(X, Y)["s"], exported.call(X, Y)["s"])
  np.testing.assert_allclose(jax.jit(jax.grad(lambda x: read.call(x, Y)["s"].sum()))(X), np.full((3, 4), 2.0))
  assert read.vjp().vjp().in_avals[:2] == exported.in_avals and not read.vjp().vjp().has_vjp()
  bare = export.deserialize(exported.serialize())
  with pytest.raises(ValueError, match="No VJP is available"):
    jax.grad(lambda x: bare.call(x, Y)["s"].sum())(X)
  with pytest.raises(ValueError, match="exported program"):
    export.deserialize(b"something else")


Pair = collections.namedtuple("Pair", "left right")


@jax.tree_util.register_pytree_node_class
class Tagged:
  def __init__(self, value, tag):
    self.value, self.tag = value, tag

  def tree_flatten(self):
    return (self.value,), self.tag

  @classmethod
  def tree_unflatten(cls, tag, children):
    return cls(children[0], tag)


def test_trees_of_registered_classes_are_kept():
  function = jax.jit(lambda p: [Tagged(p.left.value * p.right, p.left.tag), None])
  exported = export.export(function)(Pair(Tagged(jnp.ones(2), "x"), jnp.ones(2)))
  with pytest.raises(ValueError, match="unregistered type"):
    exported.serialize()
  export.register_namedtuple_serialization(Pair, serialized_name="test.Pair")
  export.register_pytree_node_serialization(Tagged, serialized_name="test.Tagged", serialize_auxdata=str.encode,
                                            deserialize_auxdata=bytes.decode)
  with pytest.raises(ValueError, match="Duplicate serialization registration"):
    export.register_namedtuple_serialization(Pair, serialized_name="test.Pair")
  found, none = export.deserialize(exported.serialize()).call(Pair(Tagged(jnp.full(2, 3.0), "x"), jnp.full(2, 2.0)))
  assert none is None and found.tag == "x" and found.value.tolist() == [6, 6]


@pytest.mark.parametrize("peer", PEERS)
def test_symbolic_sizes_are_solved_when_it_is_called(peer):
  module, exports = peer
  a, b = exports.symbolic_shape("a, b", constraints=("a>=4",))
  types = [module.ShapeDtypeStruct(shape, np.float32) for shape in ((a, b), (b, 2 * a))]
  exported = exports.export(module.jit(outputs))(*types)
  assert str([aval.shape for aval in exported.out_avals]) == "[(a, 2*a), ()]" and exported.uses_global_constants
  assert exported.call(np.ones((4, 3), np.float32), np.ones((3, 8), np.float32))["s"].shape == (4, 8)
  for left, right, message in (((4, 3), (3, 7), "Found inconsistency between dimension size"), ((3, 3), (3, 6), "constraint a>=4"),
                               ((4, 3), (2, 8), "inconsistency")):
    with pytest.raises(ValueError, match=message):
      exported.call(np.ones(left, np.float32), np.ones(right, np.float32))


def test_a_function_that_depends_on_the_platform_is_exported_for_each():
  def function(library):
    lax = library.lax
    inner = library.jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x * 2, tpu=lambda x: x * 3, default=lambda x: x * 5))
    return library.jit(lambda x: inner(x) + 1)
  x = np.ones(3, np.float32)
  ours = function(jax)
  assert list(ours(x)) == [3, 3, 3]
  file = export.export(ours, platforms=("tpu", "cpu", "cuda"))(x)
  theirs = oracle_export.deserialize(file.serialize(vjp_order=1))
  expected = oracle_export.export(function(oracle), platforms=("tpu", "cpu", "cuda"))(x)
  for call in (file.call, theirs.call, export.deserialize(file.serialize()).call, expected.call):
    assert list(call(x)) == [3, 3, 3]
  assert list(oracle.grad(lambda x: theirs.call(x).sum())(x)) == [2, 2, 2]
  # The program for each index of a platform, as jaxlib's module has it.
  program = _core.program_from_stablehlo(file.mlir_module_serialized)
  assert [float(eval_jaxpr(program.jaxpr, program.consts, np.int32(i), x)[0][0]) for i in range(3)] == [4, 3, 6]
  one = export.export(ours, platforms=("tpu",))(x)
  assert "3.0e+00" in one.mlir_module() and "2.0e+00" not in one.mlir_module()
  assert list(ours(x)) == [3, 3, 3]


def test_functions_of_the_library_are_exported_as_they_are():
  x = np.linspace(0, 1, 5, dtype=np.float32)
  np.testing.assert_allclose(oracle_export.deserialize(export.export(jnp.sin)(x).serialize()).call(x), np.sin(x), rtol=1e-6)


@pytest.mark.parametrize("shape, specification", [
    ((2, 2, 6), "(a + 2*b, a, a + b + c)"), ((3, 2, 6), "(a + 2*b, a, a + b + c)"), ((8, 2, 6), "(a + 2*b, a, a + b)"),
    ((7, 2, 36), "(2 * a + b, a, c * c)")])
def test_sizes_that_do_not_fit_are_named_as_in_jax(shape, specification):
  messages = []
  for library in (oracle, jax):
    with pytest.raises(ValueError) as error:
      kind = library.ShapeDtypeStruct(library.export.symbolic_shape(specification), np.float32)
      library.export.export(library.jit(lambda x: 0.0))(kind).call(np.zeros(shape, np.float32))
    messages.append(str(error.value))
  assert messages[0] == messages[1]


@pytest.mark.parametrize("specification", ["a + -1", "a*b + -2*b"])
def test_terms_with_signs(specification):
  assert str(export.symbolic_shape(specification)) == str(oracle_export.symbolic_shape(specification))


def test_constraints_name_variables_of_the_arguments():
  for library in (oracle, jax):
    size, = library.export.symbolic_shape("m", constraints=["m >= m1"])
    with pytest.raises(Exception, match="Encountered dimension variable 'm1'"):
      library.export.export(library.jit(lambda x: x))(library.ShapeDtypeStruct((size,), np.float32)).serialize()
