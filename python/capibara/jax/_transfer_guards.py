"""Transfer guards: contexts in which arrays move between host and devices only explicitly."""
import contextlib
import threading

from capibara import _core

_DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")
_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_own = threading.local()  # each direction's guard on this thread; None: that of the process


def check_level(value):
    """Raises if the value is not a guard level."""
    if value is not None and value not in _LEVELS:
        raise ValueError(f"new enum value must be None or in {list(_LEVELS)}, got {value} of type {type(value)}.")


def set_default(name, value):
    """Sets jax_transfer_guard or jax_transfer_guard_<direction> of the process."""
    check_level(value)
    for number, direction in enumerate(_DIRECTIONS):
        if name in ("transfer_guard", f"transfer_guard_{direction}"):
            _core.set_transfer_guard(number, value, False)


@contextlib.contextmanager
def _guarded(directions, value):
    check_level(value)
    levels = _own.__dict__.setdefault("levels", [None] * len(_DIRECTIONS))
    before = list(levels)
    for number in directions:
        levels[number] = value
        _core.set_transfer_guard(number, value, True)
    try:
        yield
    finally:
        for number in directions:
            levels[number] = before[number]
            _core.set_transfer_guard(number, before[number], True)


def transfer_guard(value):
    """In all directions: 'allow', 'log', 'disallow', 'log_explicit' or 'disallow_explicit'."""
    return _guarded(range(len(_DIRECTIONS)), value)


def transfer_guard_host_to_device(value):
    """From the host to devices."""
    return _guarded([0], value)


def transfer_guard_device_to_device(value):
    """From device to device."""
    return _guarded([1], value)


def transfer_guard_device_to_host(value):
    """From devices to the host."""
    return _guarded([2], value)
