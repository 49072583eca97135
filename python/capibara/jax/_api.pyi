"""Types of the transforms, which preserve a function's argument and result types where Python can express this."""
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, ParamSpec, TypeVar, overload

from capibara._core import Array, CheckpointPolicy, ClosedJaxpr, JitFunction, ShapedArray
from capibara._stub_types import AxisName, PyTree
from capibara.jax._devices import Device
from capibara.jax._sharding import Sharding
from capibara.jax.ad import VJP
from capibara.jax.typing import ArrayLike

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

@overload
def jit(
    fun: Callable[_P, _R], /, *, in_shardings: PyTree = None, out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None, static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None, donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
    device: Device | None = None, backend: str | None = None, inline: bool = False,
    compiler_options: dict[str, bool | int | float | str] | None = None, abstracted_axes: None = None, debug: bool = False,
) -> JitFunction[_P, _R]:
    """Compiles a function for the types of its arguments."""
@overload
def jit(
    fun: None = None, /, *, in_shardings: PyTree = None, out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None, static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None, donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
    device: Device | None = None, backend: str | None = None, inline: bool = False,
    compiler_options: dict[str, bool | int | float | str] | None = None, abstracted_axes: None = None, debug: bool = False,
) -> Callable[[Callable[_P, _R]], JitFunction[_P, _R]]: ...

# Gradients have the types of arguments, which no type can name once lambdas are transformed twice: checkers give up on those.
def grad(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False,
    reduce_axes: Sequence[AxisName] = (),
) -> Callable[_P, Any]:
    """The gradient of a scalar function."""
def value_and_grad(
    fun: Callable[_P, _R], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False,
    reduce_axes: Sequence[AxisName] = (),
) -> Callable[_P, tuple[_R, Any]]:
    """The value of a scalar function and its gradient."""
@overload
def jvp(fun: Callable[..., _R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False) -> tuple[_R, _R]:
    """A function's value and its directional derivative along the tangents."""
@overload
def jvp(fun: Callable[..., tuple[_R, _T]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]) -> tuple[_R, _R, _T]: ...
@overload
def vjp(fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False, reduce_axes: Sequence[AxisName] = ()) -> tuple[_R, VJP]:
    """A function's value and its pullback, from cotangents of the result to cotangents of the arguments."""
@overload
def vjp(
    fun: Callable[..., tuple[_R, _T]], *primals: Any, has_aux: Literal[True], reduce_axes: Sequence[AxisName] = ()
) -> tuple[_R, VJP, _T]: ...
@overload
def linearize(fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False) -> tuple[_R, Callable[..., _R]]:
    """A function's value and its derivative at that point as a linear function."""
@overload
def linearize(fun: Callable[..., tuple[_R, _T]], *primals: Any, has_aux: Literal[True]) -> tuple[_R, Callable[..., _R], _T]: ...
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[AxisName] = ()) -> Callable[[PyTree], tuple[PyTree, ...]]:
    """The transpose of a function promised to be linear."""
def jacfwd(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[_P, Any]:
    """The Jacobian, column by column in forward mode."""
def jacrev(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
) -> Callable[_P, Any]:
    """The Jacobian, row by row in reverse mode."""
def jacobian(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
) -> Callable[_P, Any]:
    """The Jacobian, in reverse mode."""
def hessian(
    fun: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[_P, Any]:
    """Second derivatives, forward over reverse."""
def vmap(
    fun: Callable[_P, _R], in_axes: int | None | Sequence[Any] = 0, out_axes: PyTree = 0, axis_name: AxisName | None = None,
    axis_size: int | None = None, spmd_axis_name: AxisName | None = None, sum_match: bool = False,
) -> Callable[_P, _R]:
    """Maps a function over an axis of its arguments."""
@overload
def checkpoint(
    fun: _F, *, prevent_cse: PyTree = True, policy: CheckpointPolicy | Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (), concrete: bool = False,
) -> _F:
    """A function whose intermediate values are recomputed in the backward pass, unless the policy saves them."""
@overload
def checkpoint(
    fun: None = None, *, prevent_cse: PyTree = True, policy: CheckpointPolicy | Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (), concrete: bool = False,
) -> Callable[[_F], _F]: ...
remat = checkpoint

@overload
def make_jaxpr(
    fun: Callable[_P, Any], static_argnums: int | Sequence[int] = (), axis_env: Sequence[tuple[AxisName, int]] | None = None,
    return_shape: Literal[False] = False, abstracted_axes: None = None,
) -> Callable[_P, ClosedJaxpr]:
    """A function that returns the traced program of `fun`. `axis_env` is [(name, size)]: axes that collectives may name."""
@overload
def make_jaxpr(
    fun: Callable[_P, Any], static_argnums: int | Sequence[int] = (), axis_env: Sequence[tuple[AxisName, int]] | None = None, *,
    return_shape: Literal[True], abstracted_axes: None = None,
) -> Callable[_P, tuple[ClosedJaxpr, PyTree]]: ...
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> PyTree:
    """The shapes and dtypes of a function's result, without computing it; results may also be returned as types."""
def ensure_compile_time_eval() -> AbstractContextManager[None]:
    """A context in which operations are evaluated immediately, even while a function is being traced."""

class named_scope:
    """A name for the operations traced inside; also a decorator."""

    def __init__(self, name: str) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __call__(self, fun: _F) -> _F: ...

def named_call(fun: _F, *, name: str | None = None) -> _F:
    """A function whose operations are traced in a scope with its name."""
def block_until_ready(x: _T) -> _T:
    """Waits for every array of a tree."""
def device_get(x: PyTree) -> PyTree:
    """Every array of a tree as a NumPy array; tracers and keys, which have no NumPy form, are returned unchanged."""
def copy_to_host_async(x: _T) -> _T:
    """Starts copies to the host for every leaf that supports it, so that a later device_get waits less."""
@overload
def device_put(
    x: ArrayLike, device: Device | Sharding | None = None, *, src: Device | Sharding | None = None, donate: bool = False,
    may_alias: bool | None = None,
) -> Array:
    """Places every leaf of a tree: on the default device, on a device, or according to a sharding."""
@overload
def device_put(x: _T, device: PyTree = None, *, src: PyTree = None, donate: PyTree = False, may_alias: PyTree = None) -> _T: ...
def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: Any, sharding: Sharding | None = None, vmap_method: str | None = None,
    vectorized: None = None, **kwargs: Any,
) -> PyTree:
    """Calls a Python function without side effects from a program."""
def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: Any, sharding: Sharding | None = None, ordered: bool = False, **kwargs: Any
) -> PyTree:
    """Calls a Python function with side effects from a program, exactly once."""
def clear_caches() -> None:
    """Clears all caches of traced and compiled functions and everything derived from them; later calls retrace."""
def typeof(x: Any) -> ShapedArray:
    """The abstract type of a value."""
