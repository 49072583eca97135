"""Types of jax.flatten_util: a tree as one vector."""
from collections.abc import Callable

from capibara._core import Array
from capibara._stub_types import PyTree

def ravel_pytree(pytree: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """All leaves of a tree in one vector, and the inverse function."""
