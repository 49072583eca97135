"""Types of the functions of jax.numpy that take Python functions or registered primitives."""
from collections.abc import Callable, Collection
from typing import Any

from capibara.jax.typing import ArrayLike

def vectorize(pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None) -> Callable[..., Any]:
    """Makes a function of core dimensions broadcast over other dimensions, by vmap."""
def custom_op(x: ArrayLike, *operands: ArrayLike, optimization: str | None = None, **parameters: Any) -> Any:
    """Applies a registered user primitive to arrays."""
