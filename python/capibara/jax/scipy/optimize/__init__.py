"""jax.scipy.optimize: minima of functions of a vector."""
from typing import Any, NamedTuple

import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax.scipy.optimize._bfgs import minimize_bfgs
from capibara.jax.scipy.optimize._lbfgs import minimize_lbfgs


class OptimizeResults(NamedTuple):
    """The result of a minimization; status 0: converged, 1: too many iterations, 3 (5 for L-BFGS): the line search failed."""
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
    """A local minimum of fun(x, *args), a scalar function of a vector, by method 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this'.

    Options of both: maxiter (200 per element), norm of the gradient (inf), gtol (1e-5). Of BFGS: line_search_maxiter (10). Of L-BFGS:
    maxcor (10), the number of stored steps, ftol (2.2e-9), maxfun and maxgrad (unlimited), maxls (20). `tol` sets gtol.
    It may be jitted and mapped; it is not differentiable, since the number of steps is not known in advance.
    """
    options = dict(options or {})
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    methods = ("bfgs", "l-bfgs-experimental-do-not-rely-on-this")
    if method.lower() not in methods:
        raise ValueError(f"Method {method} not recognized: minimize has 'BFGS' and '{methods[1]}'")
    if tol is not None:
        options.setdefault("gtol", tol)
    if method.lower() != "bfgs":
        end = minimize_lbfgs(lambda x: fun(x, *args), jnp.asarray(x0), **options)
        return OptimizeResults(end.x, end.converged, end.status, end.f, jnp.conj(end.g), None, end.evaluations, end.evaluations, end.k)
    end = minimize_bfgs(lambda x: fun(x, *args), jnp.asarray(x0), **options)
    status = jnp.where(end.converged, 0, jnp.where(end.failed, 3, 1))
    return OptimizeResults(end.x, end.converged, status, end.f, end.g, end.H, end.evaluations, end.evaluations, end.k)


explain_missing(__name__)
