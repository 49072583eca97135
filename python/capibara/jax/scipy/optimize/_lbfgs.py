"""Limited-memory BFGS: the inverse Hessian is represented by the last few steps and the gradient changes along them."""
from typing import Any, NamedTuple

import capibara.jax.numpy as jnp
from capibara.jax import lax
from capibara.jax.scipy.optimize._line_search import dot, line_search, value_and_ascent


class State(NamedTuple):
    x: Any
    f: Any
    g: Any            # the gradient
    steps: Any        # [maxcor, size], the latest at the end; zeros for missing ones
    changes: Any      # of the gradient along the steps
    rho: Any          # 1 / (step . change); zero skips a step
    scale: Any        # of the inverse Hessian before the steps
    k: Any            # steps taken
    evaluations: Any  # of the function and its gradient together
    converged: Any
    status: Any       # 1: maxiter, 2: maxfun, 3: maxgrad, 4: lowered by less than ftol, 5: the line search failed


def _direction(state):
    """Minus the estimated inverse Hessian times the gradient, by two passes over the steps."""
    def back(q, step):
        s, y, rho = step
        a = (rho * dot(s, q)).astype(q.dtype)
        return q - a * y, a

    def forth(q, step):
        s, y, rho, a = step
        return q + s * (a - (rho * dot(y, q)).astype(q.dtype)), None

    kept = (state.steps, state.changes, state.rho)
    q, a = lax.scan(back, -state.g, kept, reverse=True)
    return lax.scan(forth, state.scale.astype(q.dtype) * q, (*kept, a))[0]


def minimize_lbfgs(fun, x0, maxiter=None, norm=jnp.inf, maxcor=10, ftol=2.220446049250313e-09, gtol=1e-05, maxfun=None, maxgrad=None,
                   maxls=20):
    """The final state of a minimization that starts at x0, a vector."""
    if x0.ndim != 1:
        raise ValueError(f"minimize: x0 must be a vector, got shape {x0.shape}")
    x0 = x0 if jnp.issubdtype(x0.dtype, jnp.inexact) else x0.astype(jnp.promote_types(x0.dtype, jnp.float32))
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = 200 * x0.size
    unlimited = jnp.iinfo(jnp.int32).max
    limits = [unlimited if limit is None or limit == jnp.inf else limit for limit in (maxiter, maxfun, maxgrad)]
    value_and_gradient = value_and_ascent(fun)

    def step(state):
        direction = _direction(state)
        # No previous function value is passed: the first trial is the full step.
        found = line_search(lambda a: value_and_gradient(state.x + a.astype(direction.dtype) * direction), direction, state.f, state.g,
                            state.f, maxls)
        s, y = found.a.astype(direction.dtype) * direction, found.g - state.g
        curvature = dot(s, y)
        curved = curvature > 0
        rho = jnp.where(curved, 1 / jnp.where(curved, curvature, 1), 0)
        scale = jnp.where(curved, curvature / jnp.where(curved, dot(y, y), 1), state.scale)
        converged = jnp.linalg.norm(found.g, ord=norm) < gtol
        taken = (state.k, state.evaluations, state.evaluations)
        spent = [count >= limit for count, limit in zip(taken, limits)]
        status = jnp.select((found.failed, *spent, state.f - found.f < ftol), (5, 1, 2, 3, 4), 0)

        def last(history, new):
            return jnp.concatenate([history[1:], new[None]])

        return State(state.x + s, found.f, found.g, last(state.steps, s), last(state.changes, y), last(state.rho, rho), scale, state.k + 1,
                     state.evaluations + found.evaluations, converged, jnp.where(converged, 0, status).astype(jnp.int32))

    f, g = value_and_gradient(x0)
    none = jnp.zeros((maxcor, x0.size), x0.dtype)
    start = State(x0, f, g, none, none, jnp.real(none[:, 0]), jnp.ones((), f.dtype), jnp.int32(0), jnp.int32(1), jnp.array(False),
                  jnp.int32(0))
    return lax.while_loop(lambda state: ~state.converged & (state.status == 0), step, start)
