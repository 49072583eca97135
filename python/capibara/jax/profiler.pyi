"""Types of jax.profiler."""
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar, overload

from capibara.operate.profile_server import ProfilerServer

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T", bound="TraceAnnotation")

class ProfileEvent:
    """An event with a duration, on a line of a profile."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def start_ns(self) -> float: ...
    @property
    def duration_ns(self) -> float: ...
    @property
    def end_ns(self) -> float: ...
    @property
    def stats(self) -> Iterator[tuple[str | None, Any]]: ...

class ProfileLine:
    """A line of a profile: the events of a thread or of a stream."""

    @property
    def name(self) -> str: ...
    @property
    def events(self) -> Iterator[ProfileEvent]: ...

class ProfilePlane:
    """A plane of a profile: a host or a device."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def lines(self) -> Iterator[ProfileLine]: ...
    @property
    def stats(self) -> Iterator[tuple[str | None, Any]]: ...

class ProfileData:
    """A profile read from an .xplane.pb file: planes of lines of events."""

    def __init__(self, serialized_xspace: bytes, /) -> None: ...
    @classmethod
    def from_file(cls, proto_file_path: str | os.PathLike[str]) -> ProfileData: ...
    @classmethod
    def from_serialized_xspace(cls, serialized_xspace: bytes) -> ProfileData: ...
    @staticmethod
    def text_proto_to_serialized_xspace(text: str, /) -> bytes: ...
    @classmethod
    def from_text_proto(cls, text: str, /) -> ProfileData: ...
    @property
    def planes(self) -> Iterator[ProfilePlane]: ...
    def find_plane_with_name(self, name: str) -> ProfilePlane | None: ...

class ProfileOptions:
    """What a profile records, and where a remote capture writes it."""

    host_tracer_level: int
    python_tracer_level: int
    session_id: str
    repository_path: str
    duration_ms: int
    start_timestamp_ns: int
    enable_hlo_proto: bool
    include_dataset_ops: bool
    raise_error_on_start_failure: bool
    advanced_configuration: dict[str, Any]

class TraceAnnotation:
    """A named span in the current profile."""

    def __init__(self, name: str, /, **kwargs: object) -> None: ...
    @staticmethod
    def is_enabled() -> bool: ...
    def set_metadata(self, **kwargs: object) -> None: ...
    def __enter__(self: _T) -> _T: ...
    def __exit__(self, *exception: object) -> None: ...

class StepTraceAnnotation(TraceAnnotation):
    """A training step."""

    def __init__(self, name: str, **kwargs: object) -> None: ...

@overload
def annotate_function(func: _F, name: str | None = None, **decorator_kwargs: object) -> _F:
    """A function whose calls are spans in the current profile."""
@overload
def annotate_function(func: None = None, name: str | None = None, **decorator_kwargs: object) -> Callable[[_F], _F]: ...
def start_trace(log_dir: str | os.PathLike[str], create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> None:
    """Starts a profile that `stop_trace` writes to a folder."""
def stop_trace() -> None:
    """Stops the trace and writes its files."""
def trace(log_dir: str | os.PathLike[str], create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
          profiler_options: ProfileOptions | None = None) -> AbstractContextManager[None]:
    """Traces the body of a with statement."""
def start_server(port: int, requires_backend: bool = True) -> ProfilerServer:
    """Starts the server from which xprof and TensorBoard capture profiles."""
def stop_server() -> None:
    """Stops the server."""
def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Includes another process, with a profiler server at the port, in profiles of this process from now on."""
def device_memory_profile(backend: str | None = None) -> bytes:
    """The live arrays of a backend as a gzip-compressed pprof profile."""
def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None) -> None:
    """Writes `device_memory_profile` to a file."""
