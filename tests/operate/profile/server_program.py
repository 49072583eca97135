"""Sends the profiler's server valid requests and requests that it must reject; runs where grpcio is installed.

usage: server_program.py FOLDER
"""
import os
import pathlib
import subprocess
import sys
import threading

import grpc

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import profiler

CHILD = """
import sys, time
from capibara.jax import profiler
server = profiler.start_server(0)
print(server.port, flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    with profiler.TraceAnnotation("in the child"):
        time.sleep(0.001)
"""


def field(number, value):
    if isinstance(value, int):
        out, value = bytearray([number << 3]), value
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(out) + bytes([value])
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def answers(folder):
    server = profiler.start_server(0)
    try:
        profiler.start_server(0)
        raise AssertionError("two servers")
    except ValueError as error:
        assert "Only one profiler server" in str(error)
    from capibara.operate.profile_server import ProfilerServer
    try:
        ProfilerServer(server.port)
        raise AssertionError("a port twice")
    except RuntimeError as error:
        assert "is the port in use?" in str(error)
    channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
    call = channel.unary_unary("/tensorflow.ProfilerService/Profile")
    root = folder.encode()
    wrong = {"climbing session": field(1, 10) + field(5, root) + field(6, b"../out"),
             "climbing host": field(1, 10) + field(5, root) + field(6, b"s") + field(7, b"a/b"),
             "no duration": field(5, root) + field(6, b"s"), "a year": field(1, 10**10) + field(5, root) + field(6, b"s"),
             "no folder": field(1, 10) + field(6, b"s"), "malformed": b"\xff\xff",
             "wrong type": field(1, b"10") + field(5, root) + field(6, b"s")}
    for what, request in wrong.items():
        try:
            call(request, timeout=20)
            raise AssertionError(what)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, (what, error)
    assert call(field(1, 30) + field(5, root) + field(6, b"session") + field(7, b"here"), timeout=60) == b""
    assert (pathlib.Path(folder) / "session" / "here.xplane.pb").stat().st_size > 0
    profiler.start_trace(folder)
    try:
        call(field(1, 10) + field(5, root) + field(6, b"second"), timeout=20)
        raise AssertionError("two profiles")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
    profiler.stop_trace()
    profiler.stop_server()


def children(folder):
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as child:
        try:
            unregister = profiler.register_subprocess(child.pid, int(child.stdout.readline()))
            try:
                profiler.register_subprocess(child.pid, 1)
                raise AssertionError("registered twice")
            except RuntimeError as error:
                assert "registered already" in str(error)
            with profiler.trace(folder):
                threading.Event().wait(0.2)
            unregister()
        finally:
            child.kill()
    path, = pathlib.Path(folder).glob("plugins/profile/*/*.xplane.pb")
    plane = profiler.ProfileData.from_file(path).find_plane_with_name(f"/host:process {child.pid}")
    assert any(event.name == "in the child" for line in plane.lines for event in line.events)


if __name__ == "__main__":
    jax.jit(lambda x: x + 1)(jnp.ones(3))
    answers(os.path.join(sys.argv[1], "answers"))
    children(os.path.join(sys.argv[1], "children"))
    print("all as it should be")
