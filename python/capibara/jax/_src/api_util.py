"""jax._src.api_util: names of jax.api_util, and inference of argument positions and names."""
import inspect
import operator
from collections.abc import Iterable

from capibara._modules import explain_missing
from capibara.jax.api_util import debug_info, flatten_fun, flatten_fun_nokwargs, shaped_abstractify  # noqa: F401


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: int | Iterable[int] | None,
                               argnames: str | Iterable[str] | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of arguments, inferred from one another: arguments that can be passed by either have both."""
    listed = argnums if isinstance(argnums, Iterable) else () if argnums is None else (argnums,)
    numbers = tuple(map(operator.index, listed))
    names = () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if (argnums is None) == (argnames is None):
        return numbers, names
    both = [(i, name) for i, (name, parameter) in enumerate(sig.parameters.items()) if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    if argnums is None:
        return tuple(i for i, name in both if name in names), names
    return numbers, tuple(name for i, name in both if i in numbers)


explain_missing(__name__)
