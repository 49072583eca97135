"""Types of jax.test_util: checks of derivatives against finite differences."""
from collections.abc import Callable, Sequence
from typing import Any

def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"), atol: float | None = None,
    rtol: float | None = None, eps: float | None = None
) -> None:
    """Raises AssertionError if derivatives of f, up to an order, differ from finite differences along random directions."""
def check_jvp(
    f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any], atol: float | None = None, rtol: float | None = None,
    eps: float = ..., err_msg: str = ""
) -> None:
    """Raises AssertionError if a forward-mode derivative differs from a finite difference."""
def check_vjp(
    f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any], atol: float | None = None, rtol: float | None = None,
    eps: float = ..., err_msg: str = ""
) -> None:
    """Raises AssertionError if a reverse-mode derivative differs from a finite difference."""
