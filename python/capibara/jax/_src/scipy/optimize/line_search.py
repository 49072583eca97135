"""jax._src.scipy.optimize.line_search: a step length along a direction, as libraries import it from jax."""
from typing import Any, NamedTuple

import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax.scipy.optimize import _line_search


class _LineSearchResults(NamedTuple):
    """The step length a_k with the value f_k and gradient g_k there; status 0: found, 3: maxiter reached. k counts from 1, as in jax."""

    failed: Any
    nit: Any
    nfev: Any
    ngev: Any
    k: Any
    a_k: Any
    f_k: Any
    g_k: Any
    status: Any


def line_search(f, xk, pk, old_fval=None, old_old_fval=None, gfk=None, c1=1e-4, c2=0.9, maxiter=20):
    """A step from xk along pk that meets the strong Wolfe conditions with the constants c1 and c2.

    old_fval, gfk: the value and gradient at xk, if both are known. old_old_fval: the value before the previous step, for the first
    trial. maxiter: the number of trials until a bracket is found; as many again narrow it.
    """
    xk, pk = jnp.asarray(xk), jnp.asarray(pk)
    dtype = jnp.result_type(jnp.promote_types(xk.dtype, pk.dtype), jnp.float32 if not jnp.issubdtype(pk.dtype, jnp.inexact) else pk.dtype)
    xk, pk = xk.astype(dtype), pk.astype(dtype)
    evaluated = _line_search.value_and_ascent(f)
    known = old_fval is not None and gfk is not None
    value, ascent = (jnp.asarray(old_fval), jnp.conj(jnp.asarray(gfk, dtype))) if known else evaluated(xk)
    before = value if old_old_fval is None else jnp.asarray(old_old_fval, value.dtype)
    found = _line_search.line_search(lambda a: evaluated(xk + a.astype(dtype) * pk), pk, value, ascent, before, maxiter, c1, c2, maxiter)
    evaluations = found.evaluations + (0 if known else 1)
    return _LineSearchResults(failed=~found.wolfe, nit=found.evaluations, nfev=evaluations, ngev=evaluations, k=found.evaluations + 1,
                              a_k=found.a, f_k=found.f, g_k=jnp.conj(found.g), status=jnp.where(found.wolfe, 0, 3))


explain_missing(__name__)
