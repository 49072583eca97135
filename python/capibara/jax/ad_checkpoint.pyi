"""Types of jax.ad_checkpoint: checkpointing, names for policies, and saved residuals."""
from collections.abc import Callable
from typing import Any, TypeVar

from capibara._core import ShapedArray
from capibara.jax import checkpoint_policies as checkpoint_policies
from capibara.jax._api import checkpoint as checkpoint
from capibara.jax._api import remat as remat

_T = TypeVar("_T")

def checkpoint_name(x: _T, name: str) -> _T:
    """The same values under a name that policies can refer to."""
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """The residuals kept for the backward pass, with their origins."""
def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints the residuals kept for the backward pass."""
