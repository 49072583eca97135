"""Types of jax.experimental.ode."""
from collections.abc import Callable
from typing import Any

from capibara._stub_types import PyTree
from capibara.jax.typing import ArrayLike

def odeint(
    func: Callable[..., Any], y0: PyTree, t: ArrayLike, *args: Any, rtol: float = 1.4e-8, atol: float = 1.4e-8, mxstep: float = ...,
    hmax: float = ...
) -> PyTree:
    """The solution of an ordinary differential equation at given times."""
