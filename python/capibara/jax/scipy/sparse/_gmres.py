"""GMRES: Krylov spaces by Arnoldi's method, and the least squares problem in such a space."""
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.flatten_util import ravel_pytree
from capibara.jax.scipy.sparse._vectors import cast


def gmres_solution(restart, incremental):
    """The iteration for spaces of `restart` dimensions: a function of (A, b, x0, limit, maxiter, M)."""
    def iterate(A, b, x0, limit, maxiter, M):
        flat_b, unravel = ravel_pytree(b)
        dimensions = min(restart, flat_b.size)
        x0, b_norm = ravel_pytree(x0)[0], jnp.linalg.norm(flat_b)

        def apply(f):
            return lambda v: ravel_pytree(f(unravel(v)))[0]

        A, M = apply(A), apply(M)
        # The preconditioned residual is minimized: its limit is scaled as the preconditioner scales b.
        limit_norm = jnp.sqrt(limit) * jnp.where(b_norm > 0, jnp.linalg.norm(M(flat_b)) / b_norm, 1)
        solve_inside = _solve_by_rotations if incremental else _solve_whole

        def residual(x):
            r = M(flat_b - A(x))
            return r, jnp.linalg.norm(r)

        def unfinished(state):
            _, k, _, r_norm = state
            return (r_norm > limit_norm) & (k < maxiter)

        def restarted(state):
            x, k, r, r_norm = state
            x = x + solve_inside(lambda v: M(A(v)), r, r_norm, dimensions, limit_norm)
            return x, k + 1, *residual(x)

        x = lax.while_loop(unfinished, restarted, (x0, 0, *residual(x0)))[0]
        return jax.tree.map(_typed_like, unravel(x), b)
    return iterate


def _typed_like(value, other):
    return lax.convert_element_type_p.bind(value, new_dtype=other.dtype, weak_type=other.weak_type, sharding=None)


def _arnoldi_step(operator, k, basis, columns):
    """Adds one vector to an orthonormal basis [size, m + 1], and one row to the transposed Hessenberg matrix [m, m + 1]."""
    v = operator(basis[:, k])
    v_norm = jnp.linalg.norm(v)
    h = jnp.zeros_like(basis, shape=(basis.shape[1],))
    for _ in range(2):  # orthogonal up to rounding after the second pass of classical Gram-Schmidt
        overlap = jnp.matmul(basis.conj().T, v, precision=lax.Precision.HIGHEST)
        v = v - jnp.matmul(basis, overlap, precision=lax.Precision.HIGHEST)
        h = h + overlap
    rest = jnp.linalg.norm(v)
    exhausted = rest <= jnp.finfo(v.dtype).eps * v_norm  # the space is invariant and contains the solution
    rest = jnp.where(exhausted, 0, rest)
    v = jnp.where(exhausted, 0, v / cast(jnp.where(exhausted, 1, rest), v))
    return basis.at[:, k + 1].set(v), columns.at[k].set(h.at[k + 1].set(rest.astype(h.dtype))), exhausted


def _start(r, r_norm, m):
    first = jnp.where(r_norm > 0, r / cast(jnp.where(r_norm > 0, r_norm, 1), r), 0)
    basis = jnp.zeros_like(r, shape=(r.size, m + 1)).at[:, 0].set(first)
    columns = jnp.eye(m, m + 1, dtype=r.dtype)  # rows for steps not taken keep the system solvable
    return basis, columns


def _solve_whole(operator, r, r_norm, m, limit_norm):
    """The correction in the whole space; stops early only when the space is exhausted."""
    def unfinished(state):
        k, _, _, exhausted = state
        return (k < m) & ~exhausted

    def step(state):
        k, basis, columns, _ = state
        return k + 1, *_arnoldi_step(operator, k, basis, columns)

    basis, columns = _start(r, r_norm, m)
    _, basis, columns, _ = lax.while_loop(unfinished, step, (0, basis, columns, jnp.array(False)))
    target = jnp.zeros_like(r, shape=(m + 1,)).at[0].set(r_norm.astype(r.dtype))
    y = jnp.linalg.lstsq(columns.T, target)[0]
    return jnp.matmul(basis[:, :m], y, precision=lax.Precision.HIGHEST)


def _rotate(column, rotations, k):
    """Applies the first k Givens rotations to a column of the Hessenberg matrix."""
    def one(i, h):
        c, s = rotations[i]
        a, b = h[i], h[i + 1]
        return h.at[i].set(c.conj() * a + s.conj() * b).at[i + 1].set(c * b - s * a)
    return lax.fori_loop(0, k, one, column)


def _solve_by_rotations(operator, r, r_norm, m, limit_norm):
    """The correction by an incremental QR decomposition; stops as soon as the residual is small."""
    def unfinished(state):
        k, exhausted, rest = state[0], state[3], state[6]
        return (k < m) & (rest > limit_norm) & ~exhausted

    def step(state):
        k, basis, columns, _, rotations, target, _ = state
        basis, columns, exhausted = _arnoldi_step(operator, k, basis, columns)
        column = _rotate(columns[k], rotations, k)
        length = jnp.sqrt(jnp.abs(column[k]) ** 2 + jnp.abs(column[k + 1]) ** 2)
        safe = cast(jnp.where(length > 0, length, 1), r)
        c, s = column[k] / safe, column[k + 1] / safe
        rotations = rotations.at[k].set(jnp.stack([c, s]))
        columns = columns.at[k].set(column.at[k].set(length.astype(r.dtype)).at[k + 1].set(0))
        head = target[k]
        target = target.at[k].set(c.conj() * head).at[k + 1].set(-s * head)
        return k + 1, basis, columns, exhausted, rotations, target, jnp.abs(target[k + 1])

    basis, columns = _start(r, r_norm, m)
    target = jnp.zeros_like(r, shape=(m + 1,)).at[0].set(r_norm.astype(r.dtype))
    state = (0, basis, columns, jnp.array(False), jnp.zeros_like(r, shape=(m, 2)), target, r_norm)
    k, basis, columns, _, _, target, _ = lax.while_loop(unfinished, step, state)
    upper = columns[:, :m].T
    taken = jnp.where(jnp.arange(m) < k, target[:m], 0)
    y = jax.scipy.linalg.solve_triangular(upper, taken)
    return jnp.matmul(basis[:, :m], y, precision=lax.Precision.HIGHEST)
