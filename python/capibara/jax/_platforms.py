"""The platform that functions are traced for: the current one, or another for which one is exported."""
import contextlib
import contextvars

from capibara import _core

_chosen = contextvars.ContextVar("capibara_lowering_platform", default=None)
_asked = [False]  # whether a function has depended on the platform, so that its traces do


def lowering_platform() -> str:
    """The platform that a function is traced for, asked by functions that depend on it."""
    _asked[0] = True
    return _chosen.get() or _core.lowering_platform()


@contextlib.contextmanager
def traced_for(platform):
    """A context in which functions are traced for a platform; traces of functions that depended on it are cleared before and after."""
    token = _chosen.set(platform)
    if _asked[0]:
        _core.clear_caches()
    try:
        yield
    finally:
        _chosen.reset(token)
        if _asked[0]:
            _core.clear_caches()


def depends_on_platform(trace) -> bool:
    """True if a trace asked for its platform."""
    before, _asked[0] = _asked[0], False
    if before:
        _core.clear_caches()
    try:
        trace()
        return _asked[0]
    finally:
        _asked[0] |= before
