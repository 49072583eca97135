"""Types of structured control flow and of lax's tree functions."""
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from capibara._core import Array
from capibara._stub_types import PyTree
from capibara.jax.typing import ArrayLike

_T = TypeVar("_T")
_Y = TypeVar("_Y")
_F = TypeVar("_F", bound=Callable[..., Any])

# A number that a loop carries is an array inside of it and after it.
@overload
def scan(
    f: Callable[[Array, Any], tuple[ArrayLike, _Y]], init: ArrayLike, xs: PyTree = None, length: int | None = None, reverse: bool = False,
    unroll: int | bool = 1, _split_transpose: bool = False
) -> tuple[Array, _Y]:
    """Runs f over the leading axis of xs, carrying a state; returns the final state and the stacked outputs."""
@overload
def scan(
    f: Callable[[_T, Any], tuple[_T, _Y]], init: _T, xs: PyTree = None, length: int | None = None, reverse: bool = False,
    unroll: int | bool = 1, _split_transpose: bool = False
) -> tuple[_T, _Y]: ...
@overload
def while_loop(cond_fun: Callable[[Array], ArrayLike], body_fun: Callable[[Array], ArrayLike], init_val: ArrayLike) -> Array:
    """Runs body_fun on the state while cond_fun of it is true."""
@overload
def while_loop(cond_fun: Callable[[_T], ArrayLike], body_fun: Callable[[_T], _T], init_val: _T) -> _T: ...
@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Array], ArrayLike], init_val: ArrayLike, *, unroll: int | bool | None = None
) -> Array:
    """Runs body_fun(i, state) for i in [lower, upper); a scan if the bounds are static, else a while loop."""
@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, _T], _T], init_val: _T, *, unroll: int | bool | None = None
) -> _T: ...
def cond(
    pred: ArrayLike, true_fun: Callable[..., _T], false_fun: Callable[..., _T], *operands: PyTree, operand: PyTree = ...,
    linear: Sequence[bool] | None = None
) -> _T:
    """Calls one of two functions of the operands, by a predicate; in the old form each function is preceded by its operand."""
def switch(index: ArrayLike, branches: Sequence[Callable[..., _T]], *operands: PyTree, operand: PyTree = ...) -> _T:
    """Calls the function of the operands that an index selects; the index is clamped."""
def map(f: Callable[[Any], _T], xs: PyTree, *, batch_size: int | None = None) -> _T:
    """Applies f to every slice of the leading axis, one after the other or in batches."""
def associative_scan(
    fn: Callable[[_T, _T], _T], elems: _T, reverse: bool = False, axis: int = 0, *, tpu_optimized: bool = False
) -> _T:
    """All prefixes combined by an associative function, in logarithmic depth."""
def custom_root(
    f: Callable[[Any], Any], initial_guess: _T, solve: Callable[..., Any], tangent_solve: Callable[..., Any], has_aux: bool = False
) -> Any:
    """A root of f whose derivative comes from the equation it satisfies."""
def custom_linear_solve(
    matvec: Callable[[Any], Any], b: _T, solve: Callable[..., Any], transpose_solve: Callable[..., Any] | None = None, symmetric: bool = False,
    has_aux: bool = False
) -> Any:
    """The solution of a linear system whose derivative comes from the system."""
def stop_gradient(x: _T) -> _T:
    """The same values, without derivatives."""
def optimization_barrier(operand: _T, /) -> _T:
    """The same values, across which the compiler does not optimize."""
def composite(decomposition: _F, name: str, version: int = 0) -> _F:
    """A function under a name that a back end may recognize; here it runs as its decomposition."""
def platform_dependent(*args: Any, default: Callable[..., _T] | None = None, **per_platform: Callable[..., _T]) -> _T:
    """Calls the function for the platform that a program is lowered for: 'cpu', 'cuda', 'rocm', 'tpu', or 'gpu' for cuda and rocm."""
