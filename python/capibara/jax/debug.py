"""jax.debug: looking at values while a program runs."""
import builtins
import functools
import logging
import string

from capibara import _core
from capibara._effects import DebugEffect, OrderedDebugEffect  # noqa: F401
from capibara._modules import explain_missing
from capibara.jax._debugger import breakpoint  # noqa: F401

_logger = logging.getLogger("jax.debug")


def callback(callback, *args, ordered=False, partitioned=False, **kwargs):
    """Calls a Python function with values of the running program."""
    _core.debug_callback(callback, args, kwargs, ordered)


class _FieldCheck(string.Formatter):
    """Finds fields without an argument and arguments without a field, whatever their values."""

    def format_field(self, value, format_spec):
        return ""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [n for n in range(len(args)) if n not in used_args] + [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(f"debug.print: arguments that the format does not name: {unused}")


def print(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, _use_logging=False, **kwargs):
    """Prints values of the running program: debug.print("x = {x}", x=x), or debug.print(ordered=True)("x = {x}", x=x)."""
    if fmt is None:
        if args or kwargs:
            raise TypeError(f"debug.print: without a format it takes options only, got {args=} {kwargs=}")
        return functools.partial(_print, ordered, skip_format_check, _use_logging)
    return _print(ordered, skip_format_check, _use_logging, fmt, *args, **kwargs)


def _print(ordered, skip_format_check, use_logging, fmt, /, *args, **kwargs):
    if not skip_format_check:
        _FieldCheck().format(fmt, *args, **kwargs)
    # A text without a field in front is written as it is, the values behind it.
    first = next(string.Formatter().parse(fmt), (None, None))
    has_fields = first[1] is not None

    def show(*values, **names):
        import numpy as np
        values = [np.asarray(v) if hasattr(v, "shape") else v for v in values]
        names = {k: np.asarray(v) if hasattr(v, "shape") else v for k, v in names.items()}
        text = fmt.format(*values, **names) if has_fields else " ".join([fmt, *map(str, values)])
        if use_logging:
            _logger.info("%s", text)
        else:
            builtins.print(text)

    _core.debug_callback(show, args, kwargs, ordered)


log = functools.partial(print, _use_logging=True)
log.__doc__ = "Hands values of the running program to Python's logging, at level INFO."

explain_missing(__name__)
