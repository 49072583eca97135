"""jax.scipy.sparse.linalg: iterative solvers of linear systems, for matrices and for functions on pytrees."""
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import lax
from capibara.jax.scipy.sparse._gmres import gmres_solution
from capibara.jax.scipy.sparse._vectors import add, cast, dot_real, identity, norm, norm_squared, scale, subtract, to_array, vdot

_map = jax.tree.map


def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """The conjugate gradient method for a Hermitian positive definite A: (x, None)."""
    return _solve(_conjugate_gradients, A, b, x0, tol, atol, maxiter, M, symmetric=True), None


def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """Stabilised bi-conjugate gradients for any square A: (x, None)."""
    return _solve(_stabilised_gradients, A, b, x0, tol, atol, maxiter, M), None


def gmres(A, b, x0=None, *, tol=1e-5, atol=0.0, restart=20, maxiter=None, M=None, solve_method="batched"):
    """Restarted GMRES: (x, info); info is -1 if x has NaNs, else 0.

    'batched' builds a whole Krylov space before it solves the small least squares problem; 'incremental' solves after each
    step, and stops as soon as the residual is small.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")
    iterate = gmres_solution(restart, solve_method == "incremental")
    x = _solve(iterate, A, b, x0, tol, atol, maxiter, M)
    return x, jnp.where(jnp.isnan(norm(x)), -1, 0)


def _operator(value):
    """A function from vectors to vectors, from a matrix, an object with @, or a function."""
    if callable(value):
        return value
    shape = getattr(value, "shape", None)
    if shape is None or not hasattr(value, "__matmul__"):
        raise TypeError(f"linear operator must be either a function or ndarray: {value}")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {shape}")
    return lambda x: value @ x


def _solve(iterate, A, b, x0, tol, atol, maxiter, M, symmetric=False):
    b = _map(to_array, b)
    x0 = _map(jnp.zeros_like, b) if x0 is None else _map(to_array, x0)
    leaves, structure = jax.tree.flatten(b)
    guesses, other = jax.tree.flatten(x0)
    if structure != other:
        raise ValueError(f"x0 and b must have matching tree structure: {other} vs {structure}")
    if [v.shape for v in leaves] != [v.shape for v in guesses]:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {[v.shape for v in guesses]} vs {[v.shape for v in leaves]}")
    # The loop carries have the types of the solution.
    x0 = _map(lambda x, v: x.astype(v.dtype) if x.dtype != v.dtype else x, x0, b)
    maxiter = 10 * sum(v.size for v in leaves) if maxiter is None else maxiter
    precondition = identity if M is None else _operator(M)

    def run(operator, rhs):
        # A limit on the residual's squared norm, relative to the right-hand side's or absolute.
        limit = jnp.maximum(jnp.square(tol) * norm_squared(rhs), jnp.square(atol))
        return iterate(operator, rhs, x0, limit, maxiter, precondition)

    return lax.custom_linear_solve(_operator(A), b, solve=run, transpose_solve=run, symmetric=symmetric)


def _conjugate_gradients(A, b, x0, limit, maxiter, M):
    def residual_squared(r, rz):
        return rz if M is identity else norm_squared(r)

    def unfinished(state):
        _, r, rz, _, k = state
        return (residual_squared(r, rz) > limit) & (k < maxiter)

    def step(state):
        x, r, rz, p, k = state
        Ap = A(p)
        alpha = rz / dot_real(p, Ap)
        x, r = add(x, scale(alpha, p)), subtract(r, scale(alpha, Ap))
        z = M(r)
        rz_next = dot_real(r, z)
        return x, r, rz_next, add(z, scale(rz_next / rz, p)), k + 1

    r0 = subtract(b, A(x0))
    z0 = M(r0)
    return lax.while_loop(unfinished, step, (x0, r0, dot_real(r0, z0), z0, 0))[0]


def _stabilised_gradients(A, b, x0, limit, maxiter, M):
    def unfinished(state):
        return (norm_squared(state["r"]) > limit) & (state["k"] < maxiter) & ~state["broken"]

    def step(s):
        rho = vdot(s["shadow"], s["r"])
        beta = rho / s["rho"] * s["alpha"] / s["omega"]
        p = add(s["r"], scale(beta, subtract(s["p"], scale(s["omega"], s["v"]))))
        p_hat = M(p)
        v = A(p_hat)
        alpha = rho / vdot(s["shadow"], v)
        half = subtract(s["r"], scale(alpha, v))
        early = norm_squared(half) < limit  # the first half of the step was enough
        half_hat = M(half)
        t = A(half_hat)
        omega = jnp.where(early, 0, vdot(t, half) / vdot(t, t))
        x = add(s["x"], scale(alpha, p_hat))
        # If the first half was enough, omega may be 0 / 0: the second half is skipped, not multiplied by 0.
        x = _map(lambda x, h: jnp.where(early, x, x + cast(omega, h) * h), x, half_hat)
        r = _map(lambda h, t: jnp.where(early, h, h - cast(omega, t) * t), half, t)
        broken = (rho == 0) | (alpha == 0) | (~early & (omega == 0))
        return dict(x=x, r=r, shadow=s["shadow"], p=p, v=v, rho=rho, alpha=alpha, omega=omega, k=s["k"] + 1, broken=broken)

    r0 = subtract(b, A(x0))
    one = jnp.ones_like(vdot(r0, r0))
    zeros = _map(jnp.zeros_like, r0)
    state = dict(x=x0, r=r0, shadow=r0, p=zeros, v=zeros, rho=one, alpha=one, omega=one, k=0, broken=jnp.array(False))
    return lax.while_loop(unfinished, step, state)["x"]


explain_missing(__name__)
