"""Types of jax.scipy.sparse.linalg: solvers for linear operators given by their matrix-vector product."""
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from capibara.jax.typing import ArrayLike

_T = TypeVar("_T")
_Operator: TypeAlias = ArrayLike | Callable[[Any], Any]

def cg(
    A: _Operator, b: _T, x0: _T | None = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: _Operator | None = None
) -> tuple[_T, Any]:
    """The conjugate gradient method, for positive definite operators."""
def bicgstab(
    A: _Operator, b: _T, x0: _T | None = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: _Operator | None = None
) -> tuple[_T, Any]:
    """Stabilised biconjugate gradients."""
def gmres(
    A: _Operator, b: _T, x0: _T | None = None, *, tol: float = 1e-5, atol: float = 0.0, restart: int = 20, maxiter: int | None = None,
    M: _Operator | None = None, solve_method: str = "batched"
) -> tuple[_T, Any]:
    """Restarted GMRES."""
