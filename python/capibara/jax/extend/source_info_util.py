"""jax.extend.source_info_util: where equations are said to come from."""
from capibara import _core
from capibara._modules import explain_missing
from capibara._sources import NameStack, SourceInfo


def register_exclusion(path: str) -> None:
    """Equations never come from lines of this file, but from those that called it."""
    _core.exclude_source_file(path)


def current() -> SourceInfo:
    """The scopes and the line of the user's program that are running."""
    return SourceInfo(*_core.current_source())


def current_name_stack() -> NameStack:
    """The scopes that are open."""
    return current().name_stack


def new_name_stack(name: str = "") -> NameStack:
    """Scopes of which one has been opened, or none."""
    return NameStack(name)


def new_source_info() -> SourceInfo:
    """A source that nothing is known of."""
    return SourceInfo()


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The file and line of a source as text."""
    return f"{source_info.file_name}:{source_info.line}" if source_info.file_name else "unknown"


explain_missing(__name__)
