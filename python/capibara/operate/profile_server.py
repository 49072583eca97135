"""The profiler's gRPC server for xprof and TensorBoard, and connections to processes that are profiled with this one."""
import http.server
import os
import pathlib
import threading
import time

from capibara import _core

_SERVICE = "tensorflow.ProfilerService"
_OWN = "capibara.ProfilerService"
_MAX_MILLISECONDS = 3_600_000


def _grpc(who):
    try:
        import grpc
    except ImportError:
        raise ImportError(f"{who}: needs grpcio, which is not installed; `pip install grpcio` brings it", name="grpc") from None
    return grpc


def _fields(message):
    """The fields of a protocol buffer: {number: [values]}; raises ValueError if it is malformed."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(message) or shift > 63:
                raise ValueError("malformed request")
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            value = varint()
        elif kind in (1, 2, 5):
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = message[at:at + size]
            if len(value) < size:
                raise ValueError("malformed request")
            at += size
        else:
            raise ValueError("malformed request")
        fields.setdefault(number, []).append(value)
    return fields


def _plain_name(text, what):
    """Checks the name of a file or folder: it must not lead out of its parent folder."""
    if not text or "/" in text or "\0" in text or text in (".", ".."):
        raise ValueError(f"the {what} {text!r} is not a file name")
    return text


class ProfilerServer:
    """Serves `Profile`: records for some milliseconds and writes ROOT/SESSION/HOST.xplane.pb."""

    def __init__(self, port: int) -> None:
        if not isinstance(port, int) or not 0 <= port < 65536:
            raise ValueError(f"start_server: port is a number from 0 (any free one) to 65535, got {port!r}")
        grpc = _grpc("start_server")
        from concurrent import futures
        self._grpc = grpc
        self._own_lock = threading.Lock()
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=4, thread_name_prefix="profiler"),
                                   options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler(_SERVICE, {
                "Profile": grpc.unary_unary_rpc_method_handler(self._profile)}),
            grpc.method_handlers_generic_handler(_OWN, {
                "Start": grpc.unary_unary_rpc_method_handler(self._start),
                "Stop": grpc.unary_unary_rpc_method_handler(self._stop)})))
        address = os.environ.get("CAPIBARA_PROFILER_ADDRESS", "127.0.0.1")
        try:
            self.port = self._server.add_insecure_port(f"{address}:{port}")
        except RuntimeError:
            self.port = 0
        if self.port == 0:
            raise RuntimeError(f"start_server: cannot listen at {address}:{port}; is the port in use?")
        self._server.start()

    def stop(self) -> None:
        """Stops the server after finishing any profile in progress."""
        self._server.stop(grace=5).wait()

    def _take(self, milliseconds, context):
        try:
            _core.profile_start()
        except RuntimeError as error:
            context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, f"Another profile session is active: {error}")
        end = time.monotonic() + milliseconds / 1000
        while time.monotonic() < end and context.is_active():
            time.sleep(max(0.0, min(0.05, end - time.monotonic())))
        return _core.profile_stop()

    def _profile(self, request, context):
        try:
            fields = _fields(request)
            milliseconds = fields.get(1, [0])[-1]
            root, session, host = (fields.get(number, [b""])[-1].decode() for number in (5, 6, 7))
            if not 0 < milliseconds <= _MAX_MILLISECONDS:
                raise ValueError(f"duration_ms is from 1 to {_MAX_MILLISECONDS}, got {milliseconds}")
            if not root:
                raise ValueError("repository_root is empty")
            _plain_name(session, "session_id")
            if host:
                _plain_name(host, "host_name")
        except (ValueError, AttributeError, TypeError) as error:
            context.abort(self._grpc.StatusCode.INVALID_ARGUMENT, f"Profile: {error}")
        profile = self._take(milliseconds, context)
        folder = pathlib.Path(root) / session
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{host or profile.host}.xplane.pb").write_bytes(profile.xspace())
        except OSError as error:
            context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, f"Profile: cannot write to {folder}: {error.strerror}")
        return b""

    def _start(self, request, context):
        try:
            _core.profile_start()
        except RuntimeError as error:
            context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return b""

    def _stop(self, request, context):
        try:
            return _core.profile_stop().xspace()
        except RuntimeError as error:
            context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, str(error))


class Connection:
    """A connection to a process that is profiled whenever this one is."""

    def __init__(self, pid: int, port: int, seconds: float = 10) -> None:
        grpc = _grpc("register_subprocess")
        self._pid, self._running = pid, False
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)])
        try:
            grpc.channel_ready_future(self._channel).result(timeout=seconds)
        except grpc.FutureTimeoutError:
            self._channel.close()
            raise RuntimeError(f"register_subprocess: process {pid} does not answer at port {port} within {seconds} s; "
                               "it calls jax.profiler.start_server(port)") from None

    def _call(self, method, seconds):
        import grpc
        try:
            return self._channel.unary_unary(f"/{_OWN}/{method}")(b"", timeout=seconds)
        except grpc.RpcError as error:
            import warnings
            warnings.warn(f"profiler: process {self._pid} is missing in the profile: {error.details()}", RuntimeWarning, stacklevel=5)
            return None

    def start(self) -> None:
        """Starts recording in that process."""
        self._running = self._call("Start", 10) is not None

    def stop(self) -> bytes | None:
        """The planes of its host, named after the process; None if there are none."""
        if not self._running:
            return None
        self._running = False
        space = self._call("Stop", 60)
        return None if space is None else _core.host_planes(space, f"/host:process {self._pid}")

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()


def show_in_perfetto(path: str | os.PathLike[str], port: int = 9001) -> None:
    """Prints a link that opens the file in ui.perfetto.dev, and serves the file until it has been fetched."""
    content, fetched = pathlib.Path(path).read_bytes(), threading.Event()
    name = pathlib.Path(path).name

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path != f"/{name}":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            fetched.set()

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"Open URL in browser: https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/{name}", flush=True)
        while not fetched.is_set():
            server.handle_request()
