"""jax._src.traceback_util: filtering of traceback frames."""
from capibara import _tracebacks
from capibara._modules import explain_missing
from capibara._tracebacks import UnfilteredStackTrace  # noqa: F401

_exclude_paths = _tracebacks.excluded_files


def register_exclusion(path):
    """Excludes the frames of a file from tracebacks."""
    if path not in _exclude_paths:
        _exclude_paths.append(path)


def include_frame(frame):
    """True if a frame is the user's."""
    return not _tracebacks.is_internal(frame)


def api_boundary(fun, *, repro_api_name=None, repro_user_func=False):
    """Wraps a function so that errors that leave it show only the user's frames."""
    return _tracebacks.boundary(fun)


explain_missing(__name__)
