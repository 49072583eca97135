"""Types of jax.experimental.jet: Taylor coefficients of a function along a curve."""
from collections.abc import Callable, Sequence
from typing import Any

from capibara._core import Array
from capibara.jax.typing import ArrayLike

class ZeroSeries:
    """The series of an argument that is constant along the curve."""

zero_series: ZeroSeries

def fact(n: ArrayLike) -> Array:
    """The factorial of n."""

def jet(
    fun: Callable[..., Any], primals: Sequence[ArrayLike], series: Sequence[Sequence[ArrayLike] | ZeroSeries], factorial_scaled: bool = True,
    **_: Any
) -> tuple[Any, Any]:
    """fun(*primals), and its derivatives along curves that start at the primals and have `series` as derivatives."""

def jet2(
    fun: Callable[..., Any], primals: Sequence[ArrayLike], series: Sequence[Sequence[ArrayLike] | ZeroSeries], *, factorial_scaled: bool = False,
    **_: Any
) -> tuple[Any, Any]:
    """jet with polynomial coefficients instead of derivatives."""
