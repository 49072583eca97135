"""Argument checks whose errors name the function, the argument, the expected and the actual value."""
import math
import numbers
import os


def require_number(operation, name, value, least=None, whole=True, most=None):
    """Returns the value; raises TypeError if it is not a number, ValueError if it is below `least` or above `most`."""
    kind = numbers.Integral if whole else numbers.Real
    if isinstance(value, bool) or not isinstance(value, kind) or math.isnan(value):
        raise TypeError(f"{operation}: expected a {'whole ' if whole else ''}number (argument {name!r}), got {value!r}")
    if least is not None and value < least or most is not None and value > most:
        limits = f"from {least} to {most}" if most is not None else f"of {least} or more"
        raise ValueError(f"{operation}: expected a {'whole ' if whole else ''}number {limits} (argument {name!r}), got {value!r}")
    return value


def require_flag(operation, name, value):
    """Raises TypeError if a value is neither True nor False."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{operation}: expected a bool (argument {name!r}), got {value!r}")


def require_text(operation, name, value):
    """Raises TypeError if a value is not a string."""
    if not isinstance(value, str):
        raise TypeError(f"{operation}: expected a text (argument {name!r}), got {value!r}")


def require_path(operation, name, value):
    """Raises TypeError if a value is not a path."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{operation}: expected a path (argument {name!r}), got {value!r}")
