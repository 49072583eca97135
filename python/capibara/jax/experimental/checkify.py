"""jax.experimental.checkify: run-time checks inside traced functions, reported as values."""
import functools
import inspect

import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import tree_util
from capibara.jax.experimental._check_errors import (  # noqa: F401
    DivisionByZeroError,
    Error,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    NaNError,
    OOBError,
    init_error,
    record,
)
from capibara.jax.experimental._check_rules import raise_error, run_program

ErrorCategory = type[JaxException]
user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


def checkify(f, errors=user_checks):
    """A function like f that returns (error, result): failed checks of the kinds in `errors` are values instead of exceptions."""
    @functools.wraps(f, updated=())
    def checked(*args, **kwargs):
        program, out_tree, captured = _core.make_open_program(lambda: f(*args, **kwargs), ())
        error, outputs = run_program(program, errors, init_error, *captured)
        return error, out_tree.unflatten(outputs)
    return checked


def check(pred, msg, *fmt_args, debug=False, **fmt_kwargs):
    """Fails with a message, formatted with the values passed, if pred is false; in traced functions only under checkify.

    With debug=True it does nothing outside checkify.
    """
    name = "debug_check" if debug else "check"
    if not (isinstance(pred, bool) or isinstance(pred, _core.Array) and pred.shape == () and pred.dtype == np.bool_):
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}")
    leaves, tree = tree_util.tree_flatten((fmt_args, fmt_kwargs))
    for leaf in leaves:
        if not isinstance(leaf, (_core.Array, np.ndarray)):
            raise TypeError(f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {leaf!r} of type {type(leaf)}.")
    caller = inspect.currentframe().f_back
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}"

    def make(*details):
        args, kwargs = tree_util.tree_unflatten(tree, details)
        return FailedCheckError(place, msg, *args, **kwargs)

    logical_not = _core.library_function("numpy", "logical_not")
    raise_error(record(init_error, FailedCheckError, logical_not(pred), leaves, make), debug)


def debug_check(pred, msg, *fmt_args, **fmt_kwargs):
    """A check that does nothing outside checkify."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error):
    """Raises the error of a checkified function; under another checkify it becomes part of the outer error."""
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    raise_error(error, False)


explain_missing(__name__)
