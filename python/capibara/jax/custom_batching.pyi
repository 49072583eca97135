"""Types of functions with a user-defined rule for vmap."""
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)
_F = TypeVar("_F", bound=Callable[..., Any])

class custom_vmap(Generic[_P, _R]):
    """A function with a rule for vmap, given by def_vmap: rule(axis_size, in_batched, *args) -> (out, out_batched)."""

    fun: Callable[_P, _R]
    vmap_rule: Callable[..., tuple[Any, Any]] | None
    def __init__(self, fun: Callable[_P, _R]) -> None: ...
    def def_vmap(self, vmap_rule: _F) -> _F: ...
    def __getattr__(self, name: str) -> Any: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

def sequential_vmap(f: Callable[_P, _R]) -> custom_vmap[_P, _R]:
    """A function that vmap calls once for each element."""
