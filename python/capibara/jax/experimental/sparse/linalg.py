"""jax.experimental.sparse.linalg: direct solution of sparse systems, and the largest eigenvalues of a symmetric operator."""
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.experimental.sparse.csr import _csr_matvec
from capibara.jax.typing import ArrayLike


def spsolve(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6, reorder: int = 1) -> Array:
    """Solves A x = b for a square sparse matrix stored by rows, by SciPy's sparse factorization on the host.

    tol and reorder (0 to 3) are options of a GPU solver; they have no effect here, as in jax on CPUs.
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    if data.dtype != b.dtype:
        raise ValueError(f"data types do not match: data.dtype={data.dtype} b.dtype={b.dtype}")
    if not (jnp.issubdtype(indices.dtype, jnp.integer) and jnp.issubdtype(indptr.dtype, jnp.integer)):
        raise ValueError(f"index arrays must be integer typed; got indices.dtype={indices.dtype} indptr.dtype={indptr.dtype}")
    if not data.ndim == indices.ndim == indptr.ndim == b.ndim == 1:
        raise ValueError(f"Arrays must be one-dimensional. Got data.shape={data.shape} indices.shape={indices.shape} "
                         f"indptr.shape={indptr.shape} b.shape={b.shape}")
    if indptr.size != b.size + 1 or data.shape != indices.shape:
        raise ValueError(f"Invalid CSR buffer sizes: data.shape={data.shape} indices.shape={indices.shape} indptr.shape={indptr.shape}")
    if reorder not in (0, 1, 2, 3):
        raise ValueError(f"reorder={reorder} not valid, must be one of [0, 1, 2, 3]")
    float(tol)
    shape = (b.size, b.size)
    constant = jax.lax.stop_gradient(data)  # the derivative with respect to the matrix is that of the matmul

    def solve(b, transposed):
        return jax.pure_callback(functools.partial(_solve_on_host, transposed), jax.ShapeDtypeStruct(b.shape, b.dtype), constant, indices,
                                 indptr, b, vmap_method="sequential")
    return jax.lax.custom_linear_solve(lambda x: _csr_matvec(data, indices, indptr, x, shape=shape), b,
                                       lambda _, b: solve(b, False), lambda _, b: solve(b, True))


def _solve_on_host(transposed, data, indices, indptr, b):
    try:
        import scipy.sparse
        import scipy.sparse.linalg
    except ImportError as error:
        raise ImportError("jax.experimental.sparse.linalg.spsolve: SciPy is needed, which is not installed (pip install scipy)") from error
    matrix = scipy.sparse.csr_matrix(tuple(map(np.asarray, (data, indices, indptr))), shape=(b.size, b.size))
    return scipy.sparse.linalg.spsolve((matrix.T if transposed else matrix).tocsc(), np.asarray(b)).astype(b.dtype)


def lobpcg_standard(A: ArrayLike | Callable[[Array], Array], X: ArrayLike, m: int = 100,
                    tol: float | None = None) -> tuple[Array, Array, Array]:
    """The k largest eigenvalues of a symmetric matrix or function of vectors, in descending order: (values, vectors [n, k], iterations).

    X [n, k] has the initial directions, which must be independent; 5 k must be less than n. An eigenpair has converged when its
    residual is below tol * 10 n (value + |A vector|); there are at most m iterations. The method is the locally optimal block
    conjugate gradient without a preconditioner (Duersch, Shao, Yang, Gu: arXiv:1704.07458).
    """
    if isinstance(A, (jax.Array, np.ndarray)):
        return _lobpcg_standard_matrix(jnp.asarray(A), jnp.asarray(X), m, tol)
    return _lobpcg_standard_callable(A, jnp.asarray(X), m, tol)


@functools.partial(jax.jit, static_argnames=("m", "debug"))
def _lobpcg_standard_matrix(A, X, m, tol, debug=False):
    return _eigenpairs(functools.partial(_matmul, A), X, m, tol, debug)


@functools.partial(jax.jit, static_argnames=("A", "m", "debug"))
def _lobpcg_standard_callable(A, X, m, tol, debug=False):
    return _eigenpairs(A, X, m, tol, debug)


def _eigenpairs(A, X, m, tol, debug):
    n, k = X.shape
    _check(A, X)
    tol = jnp.finfo(X.dtype).eps if tol is None else tol
    X = _orthonormal(X)
    residuals, theta = _residuals(A, X)
    start = (jnp.zeros((), int), X, _complement(X, k), residuals, theta, jnp.zeros((), int))

    def step(state):
        i, X, P, R, _, _ = state
        basis = jnp.concatenate([X, P], axis=1)
        basis = jnp.concatenate([basis, _without(basis, R)], axis=1)
        values, vectors = jnp.linalg.eigh(_matmul(basis.T, A(basis)))
        values, vectors = values[::-1], vectors[:, ::-1]
        X = _unit(_matmul(basis, vectors[:, :k]))
        # The next directions: the part of the basis that is orthogonal to the new vectors and closest to the last change.
        turn, _ = jnp.linalg.qr(vectors[:k, k:].T)
        P = _unit(_matmul(basis, _matmul(vectors[:, k:], turn)))
        product = A(X)
        R = product - values[None, :k] * X
        size = 10 * n * (jnp.linalg.norm(product, axis=0) + values[:k])
        done = jnp.sum(jnp.linalg.norm(R, axis=0) < tol * size)
        return i + 1, X, P, R, values[:k], done

    if debug:
        def recorded(state, _):
            state = step(state)
            return state, {"lambda history": state[4], "converged": state[5], "X zeros": _zeros(state[1]), "P zeros": _zeros(state[2]),
                           "residual history": jnp.linalg.norm(state[3], axis=0)}
        (i, X, _, _, theta, _), history = jax.lax.scan(recorded, start, None, length=m)
        return theta, X, i, history
    i, X, _, _, theta, _ = jax.lax.while_loop(lambda state: (state[0] < m) & (state[5] < k), step, start)
    return theta, X, i


def _check(A: Any, X: Array) -> None:
    n, k = X.shape
    if k == 0:
        raise ValueError(f"must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    result = jax.eval_shape(A, jax.ShapeDtypeStruct((n, 1), X.dtype))
    if result.dtype != X.dtype:
        raise ValueError(f"A, X must have same dtypes (were {result.dtype}, {X.dtype})")
    if result.shape != (n, 1):
        raise ValueError(f"A must be ({n}, {n}) matrix A, got output {result.shape}")


def _matmul(a, b):
    return jnp.matmul(a, b, precision="highest")


def _zeros(basis):
    """The number of zero columns."""
    return jnp.sum(jnp.all(basis == 0, axis=0))


def _unit(basis):
    """Normalizes columns; zero columns stay zero."""
    norms = jnp.linalg.norm(basis, axis=0, keepdims=True)
    return basis / jnp.where(norms == 0, 1, norms)


def _residuals(A, X):
    product = A(X)
    theta = jnp.sum(X * product, axis=0)
    return product - theta[None] * X, theta


def _orthonormal(basis):
    """Orthonormal columns with the same span; zero columns replace linearly dependent ones. Two passes are enough."""
    eps = jnp.finfo(basis.dtype).eps
    for _ in range(2):
        basis = _unit(basis)
        values, vectors = jnp.linalg.eigh(_matmul(basis.T, basis))
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > eps * values[0]
        scaled = vectors * jnp.where(kept, jax.lax.rsqrt(jnp.where(kept, values, 1)), 0)[None]
        basis = _unit(_matmul(basis, scaled)) * kept[None].astype(basis.dtype)
    return basis


def _without(basis, columns):
    """Orthonormal columns of what the given ones add to an orthonormal basis; columns dominated by rounding are zero."""
    def projected(columns):
        for _ in range(2):
            columns = columns - _matmul(basis, _matmul(basis.T, columns))
        return columns
    for _ in range(2):
        columns = _orthonormal(projected(columns))
    columns = projected(columns)
    # Columns almost in the span of the basis are now far from norm 1.
    return columns * (jnp.linalg.norm(columns, axis=0, keepdims=True) >= 0.99).astype(columns.dtype)


def _complement(X, m):
    """m orthonormal columns orthogonal to the orthonormal columns of X: those of a block reflection that maps X to the first columns."""
    n, k = X.shape
    left, scale, right = jnp.linalg.svd(X[:k])
    moved = X.at[:k].add(_matmul(left, right))
    reflected = _matmul(moved, right.T * jax.lax.rsqrt(2 * (1 + scale))[None])
    units = jnp.eye(n - k, m, dtype=X.dtype)
    return (-2 * _matmul(reflected, _matmul(reflected[k:].T, units))).at[k:].add(units)


explain_missing(__name__)
