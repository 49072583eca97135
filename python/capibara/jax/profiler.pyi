"""Types of jax.profiler."""
from collections.abc import Callable
from typing import Any, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])

class TraceAnnotation:
    """A named span of a profile; no profile is taken, so that entering it does nothing."""

    def __init__(self, name: str, **metadata: Any) -> None: ...
    def __enter__(self) -> TraceAnnotation: ...
    def __exit__(self, *exception: Any) -> None: ...

class StepTraceAnnotation(TraceAnnotation):
    """A named step of a profile."""

@overload
def annotate_function(func: _F, name: str | None = None, **kwargs: Any) -> _F:
    """A function whose calls are spans of a profile."""
@overload
def annotate_function(func: None = None, name: str | None = None, **kwargs: Any) -> Callable[[_F], _F]: ...
