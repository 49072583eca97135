"""The platform that functions are traced for: the current one, or another for which one is exported."""
import contextlib
import contextvars

from capibara import _core

_chosen = contextvars.ContextVar("capibara_lowering_platform", default=None)
_was_read = [False]  # whether a function has read it, so that its traces depend on it


def lowering_platform() -> str:
    """The platform that a function is traced for; functions that depend on it call this."""
    _was_read[0] = True
    return _chosen.get() or _core.lowering_platform()


@contextlib.contextmanager
def traced_for(platform):
    """A context in which functions are traced for a platform; traces of functions that depended on it are cleared before and after."""
    token = _chosen.set(platform)
    if _was_read[0]:
        _core.clear_caches()
    try:
        yield
    finally:
        _chosen.reset(token)
        if _was_read[0]:
            _core.clear_caches()


def depends_on_platform(trace) -> bool:
    """True if a trace reads its platform."""
    before, _was_read[0] = _was_read[0], False
    if before:
        _core.clear_caches()
    try:
        trace()
        return _was_read[0]
    finally:
        _was_read[0] |= before
