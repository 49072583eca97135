"""jax._src.numpy.error: errors that functions of jax.numpy record while checking is enabled, for error_check.raise_if_error.

Three settings: `nan`, results that are NaN; `divide`, divisors that are zero; `oob`, indices outside of the array.
"""
import contextlib
import operator

import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import numpy, tree_util
from capibara.jax._config import NUMBER_CHECKS
from capibara.jax._src.error_check import set_error_if

# The functions that jax 0.10.2 checks; `power` with a number as exponent is a repeated multiplication and not among them.
_NAN = frozenset("acos acosh add arccos arccosh arcsin arctanh asin atanh cos divide divmod float_power floor_divide fmod hypot log log10 "
                 "log1p log2 mod pow power remainder sin sqrt subtract tan true_divide".split())
_DIVIDE = frozenset("divide divmod floor_divide mod remainder true_divide".split())


def _is_on(category):
    return NUMBER_CHECKS[category].value == "raise"


def _set_error_if_nan(pred, /):
    if _is_on("nan") and numpy.issubdtype(pred.dtype, np.floating):
        set_error_if(numpy.isnan(pred), "NaN encountered")


def _set_error_if_divide_by_zero(pred, /):
    if _is_on("divide"):
        set_error_if(pred == numpy.zeros((), pred.dtype), "Division by zero encountered")


def _set_error_if_with_category(pred, /, msg, category=None):
    if category not in (None, *NUMBER_CHECKS):
        raise ValueError(f"Invalid category: {category}")
    if category in ("nan", "divide"):
        raise ValueError(f"{category} has a function of its own: _set_error_if_{'nan' if category == 'nan' else 'divide_by_zero'}")
    if category is None or _is_on(category):
        set_error_if(pred, msg)


def _set_error_if_outside(array, key):
    """Records an error if an index array of array[key] has an element that is no position; Python numbers are static."""
    if not _is_on("oob"):
        return
    items = key if isinstance(key, tuple) else (key,)
    items = [numpy.asarray(item) if isinstance(item, (np.ndarray, _core.Array)) else item for item in items]

    def consumed(item):
        if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
            return 0
        return item.ndim if isinstance(item, _core.Array) and item.dtype == bool else 1
    axis = 0
    for item in items:
        if item is Ellipsis:
            axis += array.ndim - sum(map(consumed, items))
            continue
        if isinstance(item, _core.Array) and item.size and numpy.issubdtype(item.dtype, np.integer) and axis < array.ndim:
            size = array.shape[axis]
            if size <= np.iinfo(item.dtype).max:
                outside = (item < -size) | (item >= size)
                _set_error_if_with_category(outside, "Out of bounds encountered before calling `lax.gather`", "oob")
        axis += consumed(item)


def check_call(function, args, kwargs):
    """Calls a function of jax.numpy, or operator.getitem, and records errors; installed while a check is enabled."""
    if function is operator.getitem:
        _set_error_if_outside(*args)
        return function(*args)
    name = function.__name__
    if name in _DIVIDE and _is_on("divide"):
        divisor = args[1] if len(args) > 1 else kwargs.get("y", kwargs.get("x2"))
        if divisor is not None:
            _set_error_if_divide_by_zero(numpy.asarray(divisor))
    out = function(*args, **kwargs)
    if name in _NAN and not (name in ("pow", "power") and len(args) > 1 and isinstance(args[1], int)):
        for leaf in tree_util.tree_leaves(out):
            _set_error_if_nan(leaf)
    return out


class error_checking_behavior:
    """A context in which functions of jax.numpy record errors: "raise", or do not: "ignore". A category overrides `all`."""

    def __init__(self, *, all=None, nan=None, divide=None, oob=None):
        chosen = {"nan": nan, "divide": divide, "oob": oob}
        self._settings = {name: all if value is None else value for name, value in chosen.items()}
        for name, value in self._settings.items():
            if value not in (None, "ignore", "raise"):
                raise ValueError(f"error_checking_behavior: {name} must be 'ignore' or 'raise', got {value!r}")
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        for name, value in self._settings.items():
            if value is not None:
                self._stack.enter_context(NUMBER_CHECKS[name](value))
        return self

    def __exit__(self, *exception):
        self._stack.close()


explain_missing(__name__)
