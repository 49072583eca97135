"""jax.profiler: writes profiles of this process for xprof, TensorBoard and Perfetto, and reads such files."""
import collections
import contextlib
import functools
import gzip
import itertools
import os
import pathlib
import sys
import threading

from capibara import _core
from capibara._errors import JaxRuntimeError
from capibara._modules import explain_missing
from capibara.jax._devices import devices, live_arrays
from capibara.operate import profile_server, xspace_text

ProfileEvent = _core.ProfileEvent
ProfilePlane = _core.ProfilePlane


class ProfileOptions:
    """What a profile records, and where a remote capture writes it.

    host_tracer_level: 0 omits host spans.
    python_tracer_level: from 1 on, Python calls on the thread that starts the trace become spans. ProfileOptions() enables
        this, `start_trace` without options does not, since it costs time.
    session_id: the name of the folder for the trace; the time if empty.
    duration_ms, repository_path, start_timestamp_ns: those of a remote capture.
    """

    def __init__(self):
        self.host_tracer_level = 2
        self.python_tracer_level = 1
        self.session_id = ""
        self.repository_path = ""
        self.duration_ms = 0
        self.start_timestamp_ns = 0
        # XLA only: there is no HLO and no tf.data here, and a profile that cannot start always raises.
        self.enable_hlo_proto = True
        self.include_dataset_ops = True
        self.raise_error_on_start_failure = False
        self.advanced_configuration = {}


# ---- annotations -------------------------------------------------------------------------------------------------------


class TraceAnnotation:
    """A named span in the current profile; without a profile, entering it costs a fraction of a microsecond.

    with jax.profiler.TraceAnnotation("load", batch=3): ...
    """

    def __init__(self, name, /, **kwargs):
        self._name = name
        self._metadata = kwargs
        self._span = None

    @staticmethod
    def is_enabled():
        """True while a profile is being recorded."""
        return _core.profile_active()

    def set_metadata(self, **kwargs):
        """Adds metadata that becomes known later."""
        self._metadata.update(kwargs)
        if self._span is not None:
            for name, value in kwargs.items():
                self._span.argument(name, str(value))

    def __enter__(self):
        if _core.profile_active():
            values = self._metadata
            step = None
            if values.get("_r"):
                step = int(values["step_num"]) if "step_num" in values else next(_step_numbers)
            shown = [(name, str(value)) for name, value in values.items() if name not in ("_r", "step_num")]
            self._span = _core.ProfileSpan(str(self._name), shown, step)
            self._span.enter()
        return self

    def __exit__(self, *exception):
        if self._span is not None:
            self._span.exit()
            self._span = None


class StepTraceAnnotation(TraceAnnotation):
    """A training step: everything that the thread does inside belongs to the step.

    with jax.profiler.StepTraceAnnotation("train", step_num=step): ...
    """

    def __init__(self, name, **kwargs):
        super().__init__(name, _r=1, **kwargs)


_step_numbers = itertools.count()  # for steps without step_num


def annotate_function(func=None, name=None, **decorator_kwargs):
    """A function whose calls are spans in the current profile."""
    if func is None:
        return functools.partial(annotate_function, name=name, **decorator_kwargs)
    name = name or getattr(func, "__qualname__", None) or func.__name__

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        with TraceAnnotation(name, **decorator_kwargs):
            return func(*args, **kwargs)

    return wrapper


# ---- traces ------------------------------------------------------------------------------------------------------------


class _Trace:
    """The current trace and its output options."""

    def __init__(self, log_dir, link, perfetto, options):
        self.log_dir, self.link, self.perfetto, self.options = os.fspath(log_dir), link, perfetto or link, options
        self.calls = None


_lock = threading.Lock()
_trace = None


def start_trace(log_dir, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None):
    """Starts a profile that `stop_trace` writes to LOG_DIR/plugins/profile/TIME/HOST.xplane.pb, for xprof and TensorBoard.

    create_perfetto_trace: also writes perfetto_trace.json.gz to that folder.
    create_perfetto_link: `stop_trace` prints a link that opens the trace in ui.perfetto.dev, and waits until it has been opened.
    """
    global _trace
    if profiler_options is not None and not isinstance(profiler_options, ProfileOptions):
        raise TypeError(f"start_trace: profiler_options is a jax.profiler.ProfileOptions, got {type(profiler_options).__name__}")
    with _lock:
        if _trace is not None or _core.profile_active():
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        started = _Trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
        _core.profile_start()
        try:
            _start_subprocesses()
        except BaseException:
            _core.profile_stop()
            raise
        _trace = started
    if profiler_options is not None and profiler_options.python_tracer_level > 0:
        started.calls = _PythonCalls()


def stop_trace():
    """Stops the trace and writes its files."""
    global _trace
    with _lock:
        if _trace is None:
            raise RuntimeError("No profile started")
        done, _trace = _trace, None
        if done.calls is not None:
            done.calls.stop()
        profile = _core.profile_stop(wait=True)
    spaces = _stop_subprocesses()
    options = done.options
    xspace = profile.xspace(spaces, options is None or options.host_tracer_level > 0)
    path = _core.save_tensorboard(xspace, profile.host, done.log_dir, options.session_id if options is not None else "")
    if done.perfetto:
        target = pathlib.Path(path).parent / "perfetto_trace.json.gz"
        target.write_bytes(gzip.compress(_core.trace_json(xspace)))
        if done.link:
            profile_server.show_in_perfetto(target)


@contextlib.contextmanager
def trace(log_dir, create_perfetto_link=False, create_perfetto_trace=False, profiler_options=None):
    """Traces the body of a with statement: with jax.profiler.trace("logs"): ..."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class _PythonCalls:
    """Records spans of the Python functions that this thread calls."""

    def __init__(self):
        self._open = []
        sys.setprofile(self._note)

    def _note(self, frame, event, argument):
        if event == "call":
            code = frame.f_code
            span = _core.ProfileSpan(f"${os.path.basename(code.co_filename)}:{code.co_firstlineno} {code.co_name}", [], None)
            span.enter()
            self._open.append(span)
        elif event == "return" and self._open:
            self._open.pop().exit()

    def stop(self):
        sys.setprofile(None)
        while self._open:
            self._open.pop().exit()


# ---- servers -----------------------------------------------------------------------------------------------------------

_server = None
_subprocesses = collections.OrderedDict()  # pid: connection


def start_server(port, requires_backend=True):
    """Starts the server from which xprof and TensorBoard capture profiles ("Capture profile"), on this machine's loopback.

    CAPIBARA_PROFILER_ADDRESS sets another address to listen on: anyone who can reach it can have files written. Needs grpcio.
    """
    global _server
    if _server is not None:
        raise ValueError("Only one profiler server can be active at a time.")
    if requires_backend:
        devices()
    _server = profile_server.ProfilerServer(port)
    return _server


def stop_server():
    """Stops the server."""
    global _server
    if _server is None:
        raise ValueError("No active profiler server.")
    _server.stop()
    _server = None


def register_subprocess(pid, port):
    """Includes another process, with a profiler server at the port, in profiles of this process from now on.

    Returns a function that unregisters it. Raises RuntimeError if the process is already registered or does not answer.
    """
    if pid in _subprocesses:
        raise RuntimeError(f"register_subprocess: process {pid} is registered already")
    _subprocesses[pid] = profile_server.Connection(pid, port)

    def unregister():
        connection = _subprocesses.pop(pid, None)
        if connection is not None:
            connection.close()

    return unregister


def _start_subprocesses():
    for connection in _subprocesses.values():
        connection.start()


def _stop_subprocesses():
    return [space for space in (connection.stop() for connection in list(_subprocesses.values())) if space]


# ---- memory ------------------------------------------------------------------------------------------------------------


def device_memory_profile(backend=None):
    """The live arrays of a backend as a gzip-compressed pprof profile: `pprof -top FILE` shows the memory of each shape."""
    if backend is None:
        backend = devices()[0].platform
    blocks = collections.Counter(), collections.Counter()
    for array in live_arrays(backend):
        parts = [(next(iter(array.devices())), array)]
        if len(array.devices()) > 1:
            parts = [(part.device, part.data) for part in array.addressable_shards]
        for device, data in parts:
            key = (f"{data.dtype.name}[{','.join(map(str, data.shape))}]", "buffer", f"{device.platform}:{device.id}")
            blocks[0][key] += 1
            blocks[1][key] += data.nbytes
    rows = [(*key, blocks[0][key], bytes) for key, bytes in blocks[1].most_common()]
    return gzip.compress(_core.pprof(rows))


def save_device_memory_profile(filename, backend=None):
    """Writes `device_memory_profile` to a file."""
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)


# ---- files -------------------------------------------------------------------------------------------------------------


class ProfileData:
    """A profile read from an .xplane.pb file: planes of lines of events."""

    def __init__(self, serialized_xspace, /):
        if not isinstance(serialized_xspace, bytes):
            raise TypeError(f"ProfileData: expected the bytes of an XSpace, got {type(serialized_xspace).__name__}; "
                            "ProfileData.from_file reads a file")
        try:
            self._space = _core.ProfileSpace(serialized_xspace)
        except ValueError as error:
            raise RuntimeError(f"Failed to parse XSpace from array: {error}") from None

    @classmethod
    def from_file(cls, proto_file_path):
        """Reads a file."""
        try:
            content = pathlib.Path(proto_file_path).read_bytes()
        except OSError as error:
            raise JaxRuntimeError(f"NOT_FOUND: {os.fspath(proto_file_path)}; {error.strerror}") from None
        return cls(content)

    @classmethod
    def from_serialized_xspace(cls, serialized_xspace):
        """Reads bytes."""
        return cls(serialized_xspace)

    @staticmethod
    def text_proto_to_serialized_xspace(text, /):
        """The bytes of an XSpace given as text: 'planes { name: "/host:CPU" }'."""
        return xspace_text.serialize(text)

    @classmethod
    def from_text_proto(cls, text, /):
        """Reads an XSpace given as text."""
        return cls(cls.text_proto_to_serialized_xspace(text))

    @property
    def planes(self):
        """The planes, in the order of the file."""
        return self._space.planes

    def find_plane_with_name(self, name):
        """The plane with this name; None if there is none."""
        return self._space.find_plane_with_name(name)


explain_missing(__name__)
