"""Types of jax.debug: inspecting values while a program runs."""
from collections.abc import Callable
from typing import Any, overload

from capibara._effects import DebugEffect as DebugEffect
from capibara._effects import OrderedDebugEffect as OrderedDebugEffect
from capibara.jax._debugger import breakpoint as breakpoint
from capibara.jax._sharding_pictures import inspect_array_sharding as inspect_array_sharding
from capibara.jax._sharding_pictures import visualize_array_sharding as visualize_array_sharding
from capibara.jax._sharding_pictures import visualize_sharding as visualize_sharding

@overload
def callback(callback: Callable[..., Any], *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any) -> None:
    """Calls a Python function with values of the running program: callback(f, x), or callback(ordered=True)(f, x)."""
@overload
def callback(callback: None = None, *, ordered: bool = False, partitioned: bool = False) -> Callable[..., None]: ...
@overload
def print(
    fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, _use_logging: bool = False,
    **kwargs: Any
) -> None:
    """Prints values of the running program: debug.print("x = {x}", x=x), or debug.print(ordered=True)("x = {x}", x=x)."""
@overload
def print(
    fmt: None = None, *, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, _use_logging: bool = False
) -> Callable[..., None]: ...
def log(
    fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, **kwargs: Any
) -> None:
    """Logs values of the running program with Python's logging."""
