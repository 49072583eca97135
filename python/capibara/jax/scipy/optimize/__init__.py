"""jax.scipy.optimize: minima of functions of a vector."""
from typing import Any, NamedTuple

import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax.scipy.optimize._bfgs import minimize_bfgs


class OptimizeResults(NamedTuple):
    """Where a minimisation ended; status 0: converged, 1: too many iterations, 3: the line search failed."""
    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(fun, x0, args=(), *, method, tol=None, options=None):
    """A local minimum of fun(x, *args), a scalar function of a vector, by method 'BFGS'.

    Options: maxiter (200 for each element), norm of the gradient (inf), gtol (1e-5), line_search_maxiter (10). A given `tol` is the
    gtol. It may be jitted and mapped; it is not differentiable, since its number of steps is not known beforehand.
    """
    options = dict(options or {})
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() != "bfgs":
        raise ValueError(f"minimize: method must be 'BFGS', got {method!r}")
    if tol is not None:
        options.setdefault("gtol", tol)
    end = minimize_bfgs(lambda x: fun(x, *args), jnp.asarray(x0), **options)
    status = jnp.where(end.converged, 0, jnp.where(end.failed, 3, 1))
    return OptimizeResults(end.x, end.converged, status, end.f, end.g, end.H, end.evaluations, end.evaluations, end.k)


explain_missing(__name__)
