"""Filters tracebacks: when an error leaves the library, the library's own frames are removed."""
import functools
import os
import sys
import types

from capibara._core import is_tracing
from capibara._lifting import NotLifted

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
MODES = ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")
_mode = "auto"
_codes = set()  # code objects of all boundaries
excluded_files = []  # files excluded by other libraries
_NOTE = ("--------------------\nFor simplicity, the frames of capibara itself were left out of this traceback. "
         "Set JAX_TRACEBACK_FILTERING=off to see them.")


class UnfilteredStackTrace(Exception):
    """The cause of a filtered error; carries its whole traceback."""


def set_mode(mode):
    """Sets how the library's frames are filtered: config.update('jax_traceback_filtering', mode)."""
    global _mode
    _mode = mode


def is_internal(frame):
    return frame.f_code.co_filename.startswith(_PACKAGE) or frame.f_code.co_filename in excluded_files


def boundary(function):
    """Wraps a public function: errors that leave it show no frames of the library."""
    if getattr(function, "__code__", None) in _codes:
        return function

    @functools.wraps(function)
    def call_at_boundary(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            filter_frames(error)
            raise
        except NotLifted as found:
            if is_tracing():
                raise  # an enclosing transform may carry the value
            raise found.refusal() from None

    _codes.add(call_at_boundary.__code__)
    return call_at_boundary


def is_boundary(function):
    """Declares that a function catches its errors and calls filter_frames itself, which saves the wrapper's frame."""
    _codes.add(function.__code__)
    return function


def guard(module_name):
    """Makes every public function that a module defines, and its callable classes, boundaries."""
    module = sys.modules[module_name]
    guarded = {}
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module_name and not name.startswith("_"):
            setattr(module, name, guarded.setdefault(value, boundary(value)))
        elif isinstance(value, type) and value.__module__ == module_name and "__call__" in vars(value):
            value.__call__ = boundary(value.__call__)


def filter_frames(error):
    """Removes the library's frames from an error's traceback, depending on the mode; called from a boundary's own frame."""
    _filter(error, sys._getframe(1).f_back)


def filter_frames_of_call(error):
    """The same for calls that have no frame of their own, such as those of jitted functions."""
    _filter(error, sys._getframe(1))


def _filter(error, caller):
    mode = _mode if _mode != "auto" else "tracebackhide" if _ipython_hides() else "quiet_remove_frames"
    if mode == "off" or _is_nested(caller):
        return
    import traceback  # slow to import
    whole = error.__traceback__
    if mode == "tracebackhide":
        for frame, _ in traceback.walk_tb(whole):
            if is_internal(frame):
                names = frame.f_locals
                if type(names) is dict:  # before Python 3.13: a copy that would keep the error, and so the frame, alive
                    names.clear()
                names["__tracebackhide__"] = True
        return
    error.__traceback__ = _users_part(whole)
    if mode == "quiet_remove_frames":
        if _NOTE not in getattr(error, "__notes__", ()):
            error.add_note(_NOTE)
        return
    if isinstance(error.__cause__, UnfilteredStackTrace):  # set by a nested call: it has all frames already
        return
    cause = UnfilteredStackTrace("".join(traceback.format_exception_only(error)).strip()
                                 + "\n\nThis is the error with all frames; the one below leaves out capibara's own.")
    # An error raised by the call itself has no frames yet: it occurred in the caller's frame.
    cause.__traceback__ = _with_callers(whole or types.TracebackType(None, caller, caller.f_lasti, caller.f_lineno))
    cause.__cause__, cause.__context__ = error.__cause__, error.__context__
    cause.__suppress_context__ = error.__suppress_context__
    error.__cause__, error.__context__ = cause, None


def _is_nested(frame):
    """True if an outer boundary will also see the error; `frame` is the caller of the current boundary."""
    while frame is not None:
        if frame.f_code in _codes:
            return True
        frame = frame.f_back
    return False


def _users_part(whole):
    kept, links = None, []
    while whole is not None:
        links.append(whole)
        whole = whole.tb_next
    for link in reversed(links):
        if not is_internal(link.tb_frame):
            kept = types.TracebackType(kept, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return kept


def _with_callers(whole):
    """Extends a traceback to start at the program's module: a cause is printed without its calling frames."""
    import traceback
    in_module = False
    for frame, line in traceback.walk_stack(whole.tb_frame.f_back):
        is_module = frame.f_code.co_name == "<module>"
        if in_module and not is_module:
            break
        in_module = is_module
        whole = types.TracebackType(whole, frame, frame.f_lasti, line)
    return whole


def _ipython_hides():
    """True in an IPython session, which hides frames marked with __tracebackhide__ (since 7.17)."""
    ipython = sys.modules.get("IPython")
    return (ipython is not None and ipython.get_ipython() is not None
            and tuple(ipython.version_info[:2]) >= (7, 17))
