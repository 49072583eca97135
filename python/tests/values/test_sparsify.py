"""Functions of arrays on sparse ones, and sparse arrays in other shapes: values and layouts of jax."""
import jax as oracle
import numpy as np
import pytest
from jax.experimental import sparse as oracle_sparse

import capibara.jax as jax
from capibara.jax.experimental import sparse

PEERS = [(jax, sparse), (oracle, oracle_sparse)]
draws = np.random.RandomState(0)


def some(*shape):
  return (draws.rand(*shape) * (draws.rand(*shape) < 0.4)).astype(np.float32)


A, B, D, C, ONES = some(3, 4), some(3, 4), some(4, 2), some(2, 3, 4), np.ones((2, 4, 5), np.float32)


def compare(ask, layouts=True):
  got, want = (ask(module, sparse_module) for module, sparse_module in PEERS)
  assert isinstance(got, sparse.JAXSparse) == isinstance(want, oracle_sparse.JAXSparse)
  if isinstance(got, sparse.JAXSparse):
    assert (got.shape, got.n_batch, got.n_dense) == (want.shape, want.n_batch, want.n_dense)
    got, want = got.todense(), want.todense()
  np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


FUNCTIONS = {
    "matmul": lambda jnp, a, b, d: jnp.matmul(a, d), "tanh": lambda jnp, a, b, d: jnp.tanh(a) * 3, "sum": lambda jnp, a, b, d: a.sum(),
    "sum of rows": lambda jnp, a, b, d: a.sum(0), "transpose": lambda jnp, a, b, d: a.T, "add": lambda jnp, a, b, d: a + b - a * b,
    "reshape": lambda jnp, a, b, d: a.reshape(2, 6), "squeeze": lambda jnp, a, b, d: jnp.squeeze(a[None], 0),
    "slice": lambda jnp, a, b, d: a[1:3, ::2],
    "concatenate": lambda jnp, a, b, d: jnp.concatenate([a, b]), "divide": lambda jnp, a, b, d: a / 2, "power": lambda jnp, a, b, d: a**2,
    "reverse": lambda jnp, a, b, d: a[::-1], "roots": lambda jnp, a, b, d: jnp.sqrt(abs(-a))}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("jitted", [False, True])
def test_a_function_of_sparse_arrays(name, jitted):
  def ask(module, sparse_module):
    a, b = map(sparse_module.BCOO.fromdense, (A, B))
    function = sparse_module.sparsify(lambda a, b, d: FUNCTIONS[name](module.numpy, a, b, d))
    return (module.jit(function) if jitted else function)(a, b, D)
  compare(ask)


def test_a_dense_array_times_a_sparse_one():
  compare(lambda module, sparse_module: sparse_module.sparsify(module.numpy.matmul)(A, sparse_module.BCOO.fromdense(D)))
  compare(lambda module, sparse_module: sparse_module.sparsify(module.numpy.matmul)(sparse_module.BCOO.fromdense(C, n_batch=1), ONES))
  compare(lambda module, sparse_module: module.grad(
      lambda d: sparse_module.sparsify(module.numpy.matmul)(sparse_module.BCOO.fromdense(A), d).sum())(D))


def test_a_function_that_makes_zeros_nonzero_is_refused():
  for module, sparse_module in PEERS:
    with pytest.raises(NotImplementedError, match="sparse rule for exp is not implemented"):
      sparse_module.sparsify(module.numpy.exp)(sparse_module.BCOO.fromdense(A))


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
def test_sums_over_batch_sparse_and_dense_dimensions(n_batch, n_dense, axes):
  compare(lambda _, s: s.bcoo_reduce_sum(s.BCOO.fromdense(C, n_batch=n_batch, n_dense=n_dense), axes=axes))


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_slices_and_layouts(n_batch, n_dense):
  def mat(s):
    return s.BCOO.fromdense(C, n_batch=n_batch, n_dense=n_dense)
  compare(lambda _, s: s.bcoo_slice(mat(s), start_indices=(0, 1, 1), limit_indices=(1, 3, 4), strides=(1, 1, 2)))
  compare(lambda _, s: s.bcoo_update_layout(mat(s), n_batch=0, n_dense=0))
  compare(lambda _, s: s.bcoo_update_layout(mat(s), n_batch=1, on_inefficient=None))
  for _, s in PEERS:
    with pytest.raises(s.SparseEfficiencyError if hasattr(s, "SparseEfficiencyError") else Exception):
      s.bcoo_update_layout(mat(s), n_batch=2)


def test_broadcasts():
  compare(lambda _, s: s.bcoo_broadcast_in_dim(s.BCOO.fromdense(A), shape=(2, 3, 4), broadcast_dimensions=(1, 2)))
  found = sparse.bcoo_broadcast_in_dim(sparse.BCOO.fromdense(A[:1]), shape=(3, 4), broadcast_dimensions=(0, 1))
  np.testing.assert_array_equal(found.todense(), np.broadcast_to(A[:1], (3, 4)))
