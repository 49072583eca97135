"""jax._src.traceback_util: which frames tracebacks leave out."""
from capibara import _tracebacks
from capibara._modules import explain_missing
from capibara._tracebacks import UnfilteredStackTrace  # noqa: F401

_exclude_paths = _tracebacks.excluded_files


def register_exclusion(path):
    """Leaves the frames of a file out of tracebacks."""
    if path not in _exclude_paths:
        _exclude_paths.append(path)


def include_frame(frame):
    """Whether a frame is the user's."""
    return not _tracebacks.is_internal(frame)


def api_boundary(fun, *, repro_api_name=None, repro_user_func=False):
    """The same function; errors that leave it show the user's frames alone."""
    return _tracebacks.boundary(fun)


explain_missing(__name__)
