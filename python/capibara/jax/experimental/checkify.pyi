"""Types of jax.experimental.checkify: run-time checks inside traced functions, reported as values."""
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

from capibara.jax.experimental._check_errors import DivisionByZeroError as DivisionByZeroError
from capibara.jax.experimental._check_errors import Error as Error
from capibara.jax.experimental._check_errors import FailedCheckError as FailedCheckError
from capibara.jax.experimental._check_errors import JaxException as JaxException
from capibara.jax.experimental._check_errors import JaxRuntimeError as JaxRuntimeError
from capibara.jax.experimental._check_errors import NaNError as NaNError
from capibara.jax.experimental._check_errors import OOBError as OOBError
from capibara.jax.experimental._check_errors import init_error as init_error
from capibara.jax.typing import ArrayLike

_P = ParamSpec("_P")
_R = TypeVar("_R")
ErrorCategory: TypeAlias = type[JaxException]
user_checks: frozenset[ErrorCategory]
nan_checks: frozenset[ErrorCategory]
index_checks: frozenset[ErrorCategory]
div_checks: frozenset[ErrorCategory]
float_checks: frozenset[ErrorCategory]
automatic_checks: frozenset[ErrorCategory]
all_checks: frozenset[ErrorCategory]

def checkify(f: Callable[_P, _R], errors: frozenset[ErrorCategory] = ...) -> Callable[_P, tuple[Error, _R]]:
    """A function like f that returns (error, result): failed checks of the kinds in `errors` are values instead of exceptions."""
def check(pred: ArrayLike, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fails with a message, formatted with the values passed, if pred is false; in traced functions only under checkify."""
def debug_check(pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A check that does nothing outside checkify."""
def check_error(error: Error) -> None:
    """Raises the error of a checkified function; under another checkify it becomes part of the outer error."""
