"""Types of jax.scipy.optimize: minima of functions of a vector."""
from collections.abc import Callable
from typing import Any, NamedTuple

from capibara._core import Array
from capibara.jax.typing import ArrayLike

class OptimizeResults(NamedTuple):
    """The result of a minimization; status 0: converged, 1: too many iterations, 3 (5 for L-BFGS): the line search failed."""

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array

def minimize(
    fun: Callable[..., ArrayLike], x0: ArrayLike, args: tuple[Any, ...] = (), *, method: str, tol: float | None = None,
    options: dict[str, Any] | None = None
) -> OptimizeResults:
    """A local minimum of fun(x, *args), a scalar function of a vector, by method 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this'."""
