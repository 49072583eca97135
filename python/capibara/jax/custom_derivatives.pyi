"""Types of functions with user-defined derivative rules."""
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from capibara._core import Array, CatalogPrimitive
from capibara._stub_types import PyTree
from capibara._types import CustomVJPPrimal as CustomVJPPrimal
from capibara._types import SymbolicZero as SymbolicZero
from capibara.jax._linear_call import linear_call as linear_call

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

class _CustomFunction(Generic[_P, _R]):
    fun: Callable[_P, _R]
    nondiff_argnums: tuple[int, ...]
    __name__: str
    __wrapped__: Callable[_P, _R]
    def __init__(
        self, fun: Callable[_P, _R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
    ) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> _CustomFunction[_P, _R]: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Callable[..., _R]: ...

class custom_jvp(_CustomFunction[_P, _R]):
    """A function with a rule for its derivative in forward mode, given by defjvp or defjvps."""

    jvp: Callable[..., Any] | None
    symbolic_zeros: bool
    def defjvp(self, jvp: _F, symbolic_zeros: bool = False) -> _F: ...
    def defjvps(self, *jvps: Callable[..., Any] | None) -> None: ...

class custom_vjp(_CustomFunction[_P, _R]):
    """A function with rules for its derivative in reverse mode, given by defvjp."""

    fwd: Callable[..., tuple[Any, Any]] | None
    bwd: Callable[..., Any] | None
    symbolic_zeros: bool
    optimize_remat: bool
    def defvjp(
        self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., Any], symbolic_zeros: bool = False, optimize_remat: bool = False
    ) -> None: ...

def positional_arguments(kind: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]: ...
def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """The values of a tree of CustomVJPPrimal, the argument of a forward rule with symbolic_zeros=True."""
def custom_gradient(fun: Callable[_P, tuple[_T, Callable[..., Any]]]) -> Callable[_P, _T]:
    """A function that returns (value, rule): the rule maps the value's cotangent to those of the arguments."""
def zero_from_primal(value: Any, symbolic_zeros: bool = False) -> Array | SymbolicZero:
    """The zero tangent of a value, as an array or, with symbolic_zeros, as a symbolic zero."""
def closure_convert(fun: Callable[..., _T], *example_args: Any) -> tuple[Callable[..., _T], list[Any]]:
    """A function without closed-over differentiable values, and the list of these values, which are its last arguments."""

custom_jvp_call_p: CatalogPrimitive
custom_vjp_call_p: CatalogPrimitive
