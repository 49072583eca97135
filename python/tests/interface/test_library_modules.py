"""Modules of jax that libraries import: colocated Python, arrays in TensorStore, sparse matmuls, contexts by keyword."""
import inspect

import jax as oracle
import numpy as np
import pytest
from jax.experimental import colocated_python as oracle_colocated
from jax.experimental import sparse as oracle_sparse
from jax._src import api_util as oracle_api_util
from jax._src import dtypes as oracle_dtypes

import capibara.jax as jax
from capibara.jax._src import api_util, dtypes
from capibara.jax.experimental import colocated_python, sparse

SPARSE = [pytest.param((jax, sparse), id="capibara"), pytest.param((oracle, oracle_sparse), id="jax")]


@pytest.mark.parametrize("peer", SPARSE)
@pytest.mark.parametrize("shape", [(4,), (4, 2), (2, 4, 1), (3, 2, 4, 2)])
def test_a_sparse_matrix_times_an_array_is_matmul(peer, shape):
  _, module = peer
  dense = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
  other = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
  np.testing.assert_array_equal(module.BCOO.fromdense(dense) @ other, dense @ other)


def test_a_sparse_batch_times_a_batch_is_matmul():
  dense = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 5
  other = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
  np.testing.assert_array_equal(sparse.BCOO.fromdense(dense) @ other, dense @ other)
  left, right = other.swapaxes(1, 2), dense.swapaxes(1, 2)
  np.testing.assert_array_equal(jax.numpy.asarray(left) @ sparse.BCOO.fromdense(right), left @ right)


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_contexts_take_their_value_by_keyword(module):
  seen = []
  with module.disable_jit(disable=True):
    module.jit(lambda x: seen.append(isinstance(x, module.core.Tracer)) or x)(1.0)
  with module.disable_jit(disable=False):
    module.jit(lambda x: seen.append(isinstance(x, module.core.Tracer)) or x)(1.0)
  assert seen == [False, True]


def test_private_names_of_jax_answer_as_in_jax():
  signature = inspect.signature(lambda a, b, *, c: None)
  for numbers, names in [(None, None), (0, None), ((0, 1), None), (None, "b"), (None, ("b", "c")), ((1,), ("c",)), ((), None)]:
    got, expected = (m.infer_argnums_and_argnames(signature, numbers, names) for m in (api_util, oracle_api_util))
    assert got == expected
  for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32"):
    dtype = jax.numpy.dtype(name)
    assert dtypes.to_complex_dtype(dtype) == oracle_dtypes.to_complex_dtype(dtype)


def test_contexts_refuse_another_keyword():
  with pytest.raises(TypeError, match="'disable'"):
    jax.disable_jit(enable=True)


@pytest.mark.parametrize("peer", [pytest.param((jax, colocated_python), id="capibara"), pytest.param((oracle, oracle_colocated), id="jax")])
def test_devices_of_the_cpu_are_colocated_with_themselves(peer):
  module, colocated = peer
  own = module.devices("cpu")[:1]
  assert list(colocated.colocated_cpu_devices(own)) == own
  mesh = module.sharding.Mesh(np.array(own), ("x",))
  assert colocated.colocated_cpu_devices(mesh) == mesh


def test_a_colocated_function_runs_on_the_values_of_its_arguments():
  function = colocated_python.colocated_python(lambda x: x + float(x.sum()))
  np.testing.assert_array_equal(function(jax.numpy.arange(3.0)), [3.0, 4.0, 5.0])
  with pytest.raises(ValueError, match="No devices found"):
    colocated_python.colocated_python(lambda: jax.numpy.zeros(2))()
  of_device = colocated_python.colocated_python(lambda: jax.numpy.ones(2)).specialize(devices=jax.devices())
  np.testing.assert_array_equal(of_device(), [1.0, 1.0])
  with pytest.raises(ValueError, match="devices already specified"):
    of_device.specialize(devices=jax.devices())
  wrong = function.specialize(out_specs_fn=lambda x: jax.ShapeDtypeStruct((4,), "float32"))
  with pytest.raises(ValueError, match=r"the result is float32\[3\], expected float32\[4\]"):
    wrong(jax.numpy.arange(3.0))


def test_an_object_of_a_colocated_class_is_made_once_at_the_first_call():
  made = []

  @colocated_python.colocated_python_class
  class Sum:
    def __init__(self, start):
      made.append(start)
      self.total = start

    def add(self, x):
      self.total = self.total + x
      return self.total

  total = Sum(1.0)
  assert made == []
  total.add(jax.numpy.ones(2))
  np.testing.assert_array_equal(total.add(jax.numpy.ones(2)), [3.0, 3.0])
  assert made == [1.0]


def test_arrays_go_to_tensorstore_and_come_back(tmp_path):
  pytest.importorskip("tensorstore")
  from jax.experimental.array_serialization import serialization as oracle_serialization

  from capibara.jax.experimental.array_serialization import serialization
  arrays = [jax.numpy.arange(6.0).reshape(2, 3), jax.numpy.array(7, dtype="bfloat16")]
  paths = [str(tmp_path / name) for name in ("a", "b")]
  for array, path in zip(arrays, paths):
    for ocdbt in (False, True):
      assert serialization.get_tensorstore_spec(path, ocdbt=ocdbt) == oracle_serialization.get_tensorstore_spec(path, ocdbt=ocdbt)
  done = []
  manager = serialization.GlobalAsyncCheckpointManager()
  manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: done.append(True))
  manager.wait_until_finished()
  assert done == [True]
  shardings = [array.sharding for array in arrays]
  for got, array in zip(manager.deserialize_with_paths(shardings, paths), arrays):
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(array, np.float32))
  padded, = manager.deserialize_with_paths(shardings[:1], paths[:1], global_shapes=[(3, 2)])
  np.testing.assert_array_equal(padded, [[0, 1], [3, 4], [0, 0]])
  own = [oracle.sharding.SingleDeviceSharding(oracle.devices("cpu")[0])] * 2  # jax reads what we wrote
  for got, array in zip(oracle_serialization.GlobalAsyncCheckpointManager().deserialize_with_paths(own, paths), arrays):
    np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(array, np.float32))


@pytest.mark.parametrize("module", [jax, oracle], ids=["capibara", "jax"])
def test_the_operations_of_a_program_are_primitives(module):
  import importlib
  core = importlib.import_module(f"{module.__name__}.extend.core")
  program = module.make_jaxpr(lambda x: module.numpy.sin(x) @ x)(module.numpy.ones(3))
  assert all(isinstance(equation.primitive, core.Primitive) for equation in program.eqns)

  class Own(core.Primitive):
    pass
  assert isinstance(Own("own_operation"), core.Primitive) and not isinstance(program.eqns[0].primitive, Own)


@pytest.mark.parametrize("peer", SPARSE)
def test_coordinates_with_zeros_stay_unless_they_are_eliminated(peer):
  module, sparse_module = peer
  mat = sparse_module.BCOO((module.numpy.array([1.0, 2, 0, 0]), module.numpy.array([[0], [2], [0], [1]])), shape=(3,))
  assert sparse_module.bcoo_sum_duplicates(mat).indices.tolist() == [[0], [1], [2]]
  assert mat.sum_duplicates().indices.tolist() == [[0], [2]]
  number = sparse_module.BCOO((module.numpy.array([1.0, 2, 0]), module.numpy.zeros((3, 0), int)), shape=())
  assert sparse_module.bcoo_sum_duplicates(number).data.tolist() == [3.0]


def test_random_sparse_arrays_are_those_of_jax():
  for options in ({"nse": 0.3}, {"nse": 3, "n_batch": 1, "n_dense": 1, "dtype": "float32", "sorted_indices": True}):
    got = sparse.random_bcoo(jax.random.key(0), (2, 4, 5), **options)
    want = oracle_sparse.random_bcoo(oracle.random.key(0), (2, 4, 5), **options)
    np.testing.assert_array_equal(got.indices, want.indices)
    np.testing.assert_allclose(got.data, want.data, rtol=1e-6)
