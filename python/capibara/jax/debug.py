"""jax.debug: inspecting values while a program runs."""
import builtins
import functools
import logging
import string
import sys

import numpy as np

from capibara import _core, _tracebacks
from capibara._effects import DebugEffect, OrderedDebugEffect  # noqa: F401
from capibara._modules import explain_missing
from capibara.jax._debugger import breakpoint  # noqa: F401
from capibara.jax._sharding_pictures import inspect_array_sharding, visualize_array_sharding, visualize_sharding  # noqa: F401

_logger = logging.getLogger("jax._src.debugging")  # the name that programs use


def callback(callback=None, *args, ordered=False, partitioned=False, **kwargs):
    """Calls a Python function with values of the running program: callback(f, x), or callback(ordered=True)(f, x).

    Arguments that are not arrays, such as dtypes and strings, are passed unchanged.
    """
    if callback is not None:
        return _call(ordered, callback, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"debug_callback received unexpected arguments in the two-call form: {args=} {kwargs=}")
    return functools.partial(_call, ordered)


def _call(ordered, callback, /, *args, **kwargs):
    if not callable(callback):
        raise TypeError(f"first argument to jax.debug.callback must be callable, but got an object of type {type(callback)}")
    _core.debug_callback(callback, args, kwargs, ordered)


class _FieldCheck(string.Formatter):
    """Finds fields without an argument and arguments without a field, whatever their values."""

    def format_field(self, value, format_spec):
        return ""

    def check_unused_args(self, used_args, args, kwargs):
        if unused := [value for n, value in enumerate(args) if n not in used_args]:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
        if unused := [name for name in kwargs if name not in used_args]:
            raise ValueError(f"Unused keyword arguments to `jax.debug.print`: {unused}. You may be passing an f-string, whose fields "
                             "Python has filled already: pass a plain string with fields, and the values as arguments.")


class _Fields(string.Formatter):
    """Fills fields with values of the program: formats are those of NumPy arrays, `!r` is the array's repr."""

    def convert_field(self, value, conversion):
        return repr(value) if conversion == "r" else super().convert_field(_shown(value), conversion)

    def format_field(self, value, format_spec):
        return super().format_field(_shown(value), format_spec)


def print(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False, _use_logging=False, **kwargs):
    """Prints values of the running program: debug.print("x = {x}", x=x), or debug.print(ordered=True)("x = {x}", x=x)."""
    if fmt is not None:
        return _print(ordered, skip_format_check, _use_logging, fmt, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"debug_print received unexpected arguments in the two-call form: {args=} {kwargs=}")
    return functools.partial(_print, ordered, skip_format_check, _use_logging)


def _print(ordered, skip_format_check, use_logging, fmt, /, *args, **kwargs):
    if not skip_format_check:
        _FieldCheck().format(fmt, *args, **kwargs)
    # A text that does not start with a field is written unchanged, followed by the values.
    first = next(string.Formatter().parse(fmt), (None, None))
    has_fields = first[1] is not None
    options = np.get_printoptions()  # those of the calling thread, not of the thread that runs the program
    caller = sys._getframe()
    while caller.f_back is not None and _tracebacks.is_internal(caller):
        caller = caller.f_back
    place = caller.f_code.co_filename, caller.f_lineno

    def show(*values, **names):
        with np.printoptions(**options):
            text = _Fields().format(fmt, *values, **names) if has_fields else " ".join([fmt, *map(str, map(_shown, values))])
        if use_logging:
            _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, *place, text, (), None))
        else:
            builtins.print(text)

    _core.debug_callback(show, args, kwargs, ordered)


def _shown(value):
    """The object to format: a NumPy array, which supports formats; keys format themselves."""
    return np.asarray(value) if isinstance(value, _core.Array) and isinstance(value.dtype, np.dtype) else value


log = functools.partial(print, _use_logging=True)
log.__doc__ = "Hands values of the running program to Python's logging, at level INFO."

explain_missing(__name__)
