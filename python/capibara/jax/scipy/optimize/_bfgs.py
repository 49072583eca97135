"""The Broyden-Fletcher-Goldfarb-Shanno method: steps along an estimate of the inverse Hessian."""
from typing import Any, NamedTuple

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.scipy.optimize._line_search import line_search


class State(NamedTuple):
    x: Any
    f: Any
    g: Any            # the gradient
    H: Any            # the estimate of the inverse Hessian
    f_before: Any     # of the previous step; determines the first trial step
    k: Any            # steps taken
    evaluations: Any  # of the function and its gradient together
    converged: Any
    failed: Any


def minimize_bfgs(fun, x0, maxiter=None, norm=jnp.inf, gtol=1e-5, line_search_maxiter=10):
    """The final state of a minimization that starts at x0, a vector."""
    if x0.ndim != 1:
        raise ValueError(f"minimize: x0 must be a vector, got shape {x0.shape}")
    x0 = x0.astype(jnp.promote_types(x0.dtype, jnp.float32)) if not jnp.issubdtype(x0.dtype, jnp.inexact) else x0
    maxiter = 200 * x0.size if maxiter is None else maxiter
    value_and_gradient = jax.value_and_grad(fun)
    identity = jnp.eye(x0.size, dtype=x0.dtype)

    def is_small(g):
        return jnp.linalg.norm(g, ord=norm) < gtol

    def step(state):
        direction = -(state.H @ state.g)
        found = line_search(lambda a: value_and_gradient(state.x + a * direction), direction, state.f, state.g, state.f_before, line_search_maxiter)
        s, y = found.a * direction, found.g - state.g
        curvature = jnp.dot(y, s)
        rho = jnp.where(curvature != 0, 1 / jnp.where(curvature != 0, curvature, 1), 0)
        left = identity - rho * jnp.outer(s, y)
        # The first estimate has the scale of the function's curvature: otherwise rounding of the identity exceeds a small inverse Hessian.
        scale = jnp.where((state.k == 0) & (curvature > 0), curvature / jnp.where(curvature > 0, jnp.dot(y, y), 1), 1)
        updated = left @ (scale * state.H) @ left.T + rho * jnp.outer(s, s)
        H = jnp.where(jnp.isfinite(rho) & (curvature > 0), updated, state.H)
        return State(state.x + s, found.f, found.g, H, state.f, state.k + 1, state.evaluations + found.evaluations, is_small(found.g), found.failed)

    def unfinished(state):
        return ~state.converged & ~state.failed & (state.k < maxiter)

    f, g = value_and_gradient(x0)
    # As in SciPy: the first trial step would lower the function by half the gradient's norm.
    start = State(x0, f, g, identity, f + jnp.linalg.norm(g) / 2, jnp.int32(0), jnp.int32(1), is_small(g), jnp.array(False))
    return lax.while_loop(unfinished, step, start)
