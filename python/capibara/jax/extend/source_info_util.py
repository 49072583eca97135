"""jax.extend.source_info_util: source information of equations."""
from capibara import _core
from capibara._modules import explain_missing
from capibara._sources import NameStack, SourceInfo


def register_exclusion(path: str) -> None:
    """Excludes a file as a source of equations; its callers are reported instead."""
    _core.exclude_source_file(path)


def current() -> SourceInfo:
    """The current scopes and line of the user's program."""
    return SourceInfo(*_core.current_source())


def current_name_stack() -> NameStack:
    """The current scopes."""
    return current().name_stack


def new_name_stack(name: str = "") -> NameStack:
    """A name stack with one scope, or empty."""
    return NameStack(name)


def new_source_info() -> SourceInfo:
    """An unknown source."""
    return SourceInfo()


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The file and line of a source as text."""
    return f"{source_info.file_name}:{source_info.line}" if source_info.file_name else "unknown"


explain_missing(__name__)
