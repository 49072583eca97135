"""jax.experimental.sparse: formats, layouts with batch and dense dimensions, products, derivatives and solvers, against jax."""
import importlib

import jax as oracle
import numpy as np
import pytest
import scipy.sparse

import capibara.jax as jax

draws = np.random.RandomState(1)
PEERS = [(module, importlib.import_module(f"{module.__name__}.experimental.sparse")) for module in (jax, oracle)]


def some(*shape):
  return (draws.randn(*shape) * (draws.rand(*shape) < 0.5)).astype(np.float32)


A, B, C, D, VECTOR = some(3, 4), some(4, 5), some(2, 3, 4), some(2, 4, 3), some(4)


def dense(value):
  return np.asarray(value.todense() if hasattr(value, "todense") else value)


def compare(ask):
  got, want = (ask(module, sparse) for module, sparse in PEERS)
  assert type(got).__name__ == type(want).__name__ or not hasattr(want, "todense")
  for name in ("n_batch", "n_dense", "nse"):
    assert getattr(got, name, None) == getattr(want, name, None), name
  np.testing.assert_allclose(dense(got), dense(want), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["BCOO", "BCSR", "COO", "CSR", "CSC"])
def test_formats(name):
  compare(lambda module, sparse: getattr(sparse, name).fromdense(A))
  compare(lambda module, sparse: getattr(sparse, name).fromdense(A) @ VECTOR)
  compare(lambda module, sparse: getattr(sparse, name).fromdense(A) @ B)
  compare(lambda module, sparse: sparse.empty((2, 3), sparse_format=name.lower()))
  compare(lambda module, sparse: module.jit(lambda mat: mat @ VECTOR)(getattr(sparse, name).fromdense(A)))
  if name != "BCSR":
    compare(lambda module, sparse: getattr(sparse, name).fromdense(A).T)
    for k in (-2, 0, 1, 9):
      compare(lambda module, sparse: sparse.eye(3, 4, k, sparse_format=name.lower()))
  for _, sparse in PEERS:
    with pytest.raises(TypeError, match="unhashable"):
      hash(getattr(sparse, name).fromdense(A))


@pytest.mark.parametrize("layout", [{}, {"n_batch": 1}, {"n_dense": 1}, {"n_batch": 1, "n_dense": 1}, {"n_batch": 2}])
def test_products_in_every_layout(layout):
  sparse = PEERS[0][1]
  mat = sparse.BCOO.fromdense(C, **layout)
  if "n_dense" not in layout:
    got = sparse.bcoo_dot_general(mat, D, dimension_numbers=(((2,), (1,)), ((0,), (0,))))
    np.testing.assert_allclose(got, C @ D, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(D.swapaxes(1, 2) @ jax.numpy.swapaxes(C, 1, 2), sparse.bcoo_dot_general(
        D, mat, dimension_numbers=(((1,), (2,)), ((0,), (0,)))), rtol=1e-5, atol=1e-6)
  got = sparse.bcoo_dot_general(mat, np.ones(2, np.float32), dimension_numbers=(((0,), (0,)), ((), ())))
  np.testing.assert_allclose(got, C.sum(0), rtol=1e-5, atol=1e-6)
  np.testing.assert_array_equal(dense(mat[1, 2]), C[1, 2])


def test_rows_of_row_pointers():
  rows_of_pointers = importlib.import_module("capibara.jax.experimental.sparse.util").rows_of_pointers
  for pointers, nse in (([0, 2, 2, 5], 5), ([0, 2, 2, 5], 7), ([0, 0, 0], 3), ([1, 3], 4), ([0], 2), ([0, 2, 6], 4), ([0, 0], 0)):
    got = rows_of_pointers(jax.numpy.asarray(pointers, "int32"), nse, np.dtype("int32"))
    np.testing.assert_array_equal(got, np.searchsorted(pointers, np.arange(nse), side="right") - 1)


def test_zeros_of_rows_are_eliminated():
  for nse in (None, 7):
    compare(lambda module, sparse: importlib.import_module(f"{sparse.__name__}.bcsr").bcsr_eliminate_zeros(
        sparse.BCSR.fromdense(A, nse=9), nse=nse))


def test_two_sparse_arrays():
  compare(lambda module, sparse: sparse.BCOO.fromdense(A) @ sparse.BCOO.fromdense(B))
  sparse = PEERS[0][1]
  got = sparse.bcoo_dot_general(sparse.BCOO.fromdense(C, n_batch=1), sparse.BCOO.fromdense(D, n_batch=1),
                                dimension_numbers=(((2,), (1,)), ((0,), (0,))))
  np.testing.assert_allclose(dense(got), C @ D, rtol=1e-5, atol=1e-6)
  for left, right in ((A, A), (A, A[:1]), (A, A[:, :1]), (C, C[:1])):
    got = sparse.BCOO.fromdense(left, n_batch=1) * sparse.BCOO.fromdense(right)
    np.testing.assert_allclose(dense(got), left * right, rtol=1e-6)


def test_a_product_of_large_arrays_stays_sparse():
  _, sparse = PEERS[0]
  size = 1_000_000
  mat = sparse.BCOO((np.ones(2, np.float32), np.array([[5, 7], [size - 1, 3]])), shape=(size, size))
  assert (mat * mat).sum_duplicates().data.tolist() == [1, 1] and (mat * 2 + mat).sum_duplicates().data.tolist() == [3, 3]


def test_sampled_products_and_convolutions():
  sparse = PEERS[0][1]
  indices = np.array([[0, 1], [2, 3], [2, 3]])
  got = sparse.bcoo_dot_general_sampled(A, B, indices, dimension_numbers=(((1,), (0,)), ((), ())))
  np.testing.assert_allclose(got, (A @ B)[tuple(indices.T)], rtol=1e-5, atol=1e-6)
  signal, window = some(1, 1, 9), some(1, 1, 3)
  for padding in ("SAME", "VALID", [(2, 1)]):
    got = sparse.bcoo_conv_general_dilated(sparse.BCOO.fromdense(signal, n_batch=2), sparse.BCOO.fromdense(window, n_batch=2),
                                           window_strides=(1,), padding=padding)
    np.testing.assert_allclose(dense(got), jax.lax.conv_general_dilated(signal, window, (1,), padding), rtol=1e-5, atol=1e-6)


def test_indexing():
  sparse = PEERS[0][1]
  mat = sparse.BCOO.fromdense(A)
  for index in (1, slice(None, None, 2), (None, 1), np.array([2, 0]), (slice(None, 2), np.array([True, False, True, False])), (0, 1)):
    np.testing.assert_array_equal(dense(mat[index]), A[index])
  got = sparse.bcoo_dynamic_slice(sparse.BCOO.fromdense(C, n_batch=1), (-1, 2, 1), (1, 2, 3))
  np.testing.assert_array_equal(dense(got), C[1:, 1:, 1:])


def test_maps_over_batches():
  compare(lambda module, sparse: module.vmap(lambda mat: mat @ VECTOR)(sparse.BCOO.fromdense(C, n_batch=1)))
  compare(lambda module, sparse: module.vmap(lambda mat: mat * 2)(sparse.BCOO.fromdense(C, n_batch=1)))
  compare(lambda module, sparse: module.vmap(lambda mat: mat.todense())(sparse.BCSR.fromdense(C, n_batch=1)))
  compare(lambda module, sparse: module.vmap(lambda mat: sparse.empty(mat.shape))(C))
  for module, sparse in PEERS:
    with pytest.raises(ValueError, match="Cannot map in_axis=0 for BCOO array with n_batch=0"):
      module.vmap(lambda mat: mat @ VECTOR)(sparse.BCOO.fromdense(A))


def test_derivatives_by_sparse_arrays():
  def f(mat, v):
    return (mat @ v) ** 2
  for transform in ("jacfwd", "jacrev"):
    compare(lambda module, sparse: getattr(sparse, transform)(f)(sparse.BCOO.fromdense(A), VECTOR))
  compare(lambda module, sparse: sparse.grad(lambda mat, v: f(mat, v).sum())(sparse.BCOO.fromdense(A), VECTOR))
  compare(lambda module, sparse: sparse.value_and_grad(lambda mat, v: f(mat, v).sum(), 1)(sparse.BCOO.fromdense(A), VECTOR)[1])
  compare(lambda module, sparse: sparse.grad(lambda tree: f(tree["a"], VECTOR).sum() + tree["b"])(
      {"a": sparse.BCOO.fromdense(A), "b": np.ones(())})["a"])


def test_loops_and_branches_over_sparse_arrays():
  def loops(module, sparse):
    lax = module.lax

    def f(mat, x):
      x = lax.fori_loop(0, 3, lambda i, x: mat[:, :3] @ x, x)
      mat = lax.while_loop(lambda mat: mat.sum() < 50, lambda mat: 2 * mat, abs(mat) + abs(mat))
      return lax.cond(x.sum() > 0, lambda m: m, lambda m: -m, mat)
    return sparse.sparsify(f)(sparse.BCOO.fromdense(A), A[:, 0]).todense()
  compare(loops)


def test_solvers():
  size = 12
  matrix = scipy.sparse.csr_matrix(some(size, size) + 4 * np.eye(size, dtype=np.float32))
  b = some(size)
  parts = matrix.data, matrix.indices, matrix.indptr

  def solve(module):
    linalg = importlib.import_module(f"{module.__name__}.experimental.sparse.linalg")
    gradient = module.grad(lambda data, b: linalg.spsolve(data, *parts[1:], b).sum(), (0, 1))
    return module.jit(linalg.spsolve)(*parts, b), gradient(parts[0], b)
  (x, gradients), (want, expected) = solve(jax), solve(oracle)
  np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-5)
  for one, other in zip(gradients, expected):
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_largest_eigenvalues():
  from capibara.jax.experimental.sparse import linalg
  values = np.arange(1.0, 61.0, dtype=np.float32) ** 2
  turn = np.linalg.qr(np.random.RandomState(0).randn(60, 60))[0]
  matrix = (turn * values @ turn.T).astype(np.float32)
  start = np.random.RandomState(1).randn(60, 3).astype(np.float32)
  theta, vectors, steps = linalg.lobpcg_standard(matrix, start, m=80, tol=1e-6)
  np.testing.assert_allclose(theta, values[::-1][:3], rtol=1e-4)
  np.testing.assert_allclose(matrix @ np.asarray(vectors), np.asarray(vectors) * np.asarray(theta), atol=2.0)
  assert 0 < steps < 80
  with pytest.raises(ValueError, match=r"search dim \* 5 < matrix dim"):
    linalg.lobpcg_standard(matrix[:10, :10], np.ones((10, 3), np.float32))
