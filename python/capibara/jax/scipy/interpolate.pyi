"""Types of jax.scipy.interpolate: values between the points of a grid."""
from collections.abc import Sequence

from capibara._core import Array
from capibara.jax.typing import ArrayLike

class RegularGridInterpolator:
    """Interpolates between values on a rectangular grid, whose axes must increase."""

    grid: tuple[Array, ...]
    values: Array
    fill_value: Array | None
    method: str
    bounds_error: bool

    def __init__(
        self, points: Sequence[ArrayLike], values: Array, method: str = "linear", bounds_error: bool = False,
        fill_value: ArrayLike | None = ...
    ) -> None: ...
    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array: ...
