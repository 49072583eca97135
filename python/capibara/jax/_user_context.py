"""jax.make_user_context: values that traced functions depend on, besides their arguments."""
import threading
from collections.abc import Callable, Hashable
from typing import Any

from capibara import _core

_lock = threading.Lock()
_numbers = {}  # (frozenset of (context, value)): a number, from which the key of jitted functions is made
_process = {}  # context: value, where it is not the default
_own = threading.local()  # the same of this thread's scopes
_SPREAD = 0x9E3779B97F4A7C15  # odd, so that different numbers have different keys


def _key(values):
    if not values:
        return 0
    state = frozenset(values.items())
    with _lock:
        number = _numbers.setdefault(state, len(_numbers) + 1)
    key = number * _SPREAD % 2**64
    return key - 2**64 if key >= 2**63 else key


class UserContext:
    """A value that is part of the key of jitted functions: called under another value, they are traced again."""

    def __init__(self, default_value: Hashable = None, on_change: Callable[[Any, Any], None] | None = None):
        """`on_change` is called with the value that ends and the one that begins, None for no value."""
        self._default, self._on_change = default_value, on_change

    @property
    def value(self) -> Any:
        """The value on this thread."""
        own = vars(_own).get("values")
        return own[self] if own and self in own else self.get_global()

    def get_global(self) -> Any:
        return _process.get(self, self._default)

    def set_global(self, value: Hashable) -> None:
        """Sets the value for all threads that are in no scope of this context."""
        hash(value)
        before = self.get_global()
        _process[self] = value
        if value == self._default:
            del _process[self]
        _core.set_default_trace_context(_key(_process))
        self._changed(before, value)

    def __call__(self, new_val: Hashable) -> "_Scope":
        """A context manager that sets the value on this thread."""
        return _Scope(self, new_val)

    def _changed(self, before, after):
        if self._on_change is not None:
            self._on_change(before, after)


class _Scope:
    def __init__(self, context, value):
        hash(value)
        self._context, self._value, self._before = context, value, []

    def __enter__(self) -> None:
        before = vars(_own).get("values", {})
        self._before.append(before)
        _set_own({**before, self._context: self._value})
        self._context._changed(None, self._value)

    def __exit__(self, *exception: object) -> None:
        _set_own(self._before.pop())
        self._context._changed(self._value, None)


def _set_own(values):
    _own.values = values
    _core.set_trace_context(_key({context: value for context, value in values.items() if value != context.get_global()}))


def make_user_context(default_value: Hashable = None) -> UserContext:
    """A context with a value on which traced functions may depend.

    context(value) is a context manager that sets it on this thread, context.value reads it, context.set_global(value) sets it for
    all threads. A jitted function is traced once for each value under which it is called.
    """
    return UserContext(default_value)
