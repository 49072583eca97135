"""The monitor's server against hostile clients: slow ones, many, foreign host names, malformed requests, other users."""

import json
import os
import re
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from capibara.core.tpu import TPUMonitor
from capibara.operate.monitor import set_capture_hook

BUILD = Path(os.environ.get("CAPIBARA_BUILD", Path(__file__).parents[3] / "build" / "release"))
COMMAND = os.environ.get("CAPIBARA_COMMAND") or str(BUILD / "capibara")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "capibara" / "jobs"


@pytest.fixture
def serving(home):
    with TPUMonitor(0.05, enable_prometheus=True, prometheus_port=0) as monitor:
        yield monitor


def raw(monitor, data, timeout=30):
    """The response to these bytes, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", monitor.port), timeout=timeout) as connection:
        connection.sendall(data)
        answer = b""
        while block := connection.recv(65536):
            answer += block
    return answer


def request(monitor, path="/metrics", host="127.0.0.1", method="GET", **headers):
    lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), *(f"{k}: {v}" for k, v in headers.items())]
    head, _, body = raw(monitor, ("\r\n".join(lines) + "\r\n\r\n").encode()).partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


def half_open(monitor, count):
    """Connections with the beginning of a request; the server may have closed some before the last one is open."""
    sockets = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", monitor.port), timeout=30)
        connection.sendall(b"GET / HTTP/1.1\r\nX: y")
        sockets.append(connection)
    return sockets


@pytest.mark.parametrize("count", [60, 400])
def test_half_open_connections_keep_no_one_waiting(serving, count):
    held = half_open(serving, count)
    try:
        open_before = sum(is_open(one) for one in held)
        for _ in range(5):
            status, text = request(serving)
            assert status == 200 and "capibara_uptime_seconds_total" in text
            for one in held:  # they continue, one header at a time
                try:
                    one.sendall(b"\r\nX: y")
                except OSError:
                    pass
        assert open_before > 0  # they were open while it answered
    finally:
        for one in held:
            one.close()


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        connection.settimeout(30)


def test_a_head_that_never_ends_is_closed(serving):
    [one] = half_open(serving, 1)
    with one:
        assert one.recv(100) == b""  # closed without an answer, before the timeout of 30 seconds
    assert request(serving)[0] == 200


def test_a_client_that_does_not_read_is_no_harm(serving):
    deaf = []
    for _ in range(200):
        one = socket.create_connection(("127.0.0.1", serving.port), timeout=30)
        one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 1000)
        deaf.append(one)
    assert request(serving)[0] == 200
    for one in deaf:
        one.close()


@pytest.mark.parametrize("path", ["/", "/metrics", "/metrics.json", "/capture", "/nowhere"])
def test_foreign_names_are_refused(serving, path):
    for host in ("evil.example", f"evil.example:{serving.port}", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.7",
                 "[2001:db8::1]", "127.0.0.1:x", "[::1", "*"):
        status, text = request(serving, path, host)
        assert status == 403 and "CAPIBARA_MONITOR_HOSTS" in text and "capibara_" not in text, host
        assert request(serving, path, host, "POST", **{"X-Capibara-Token": serving.link.split("#")[1]})[0] == 403
    assert request(serving, path, None)[0] == 400
    assert request(serving, path, "127.0.0.1\r\nHost: evil.example")[0] == 400


def test_its_own_names_are_answered(serving, monkeypatch, home):
    for host in ("127.0.0.1", f"127.0.0.1:{serving.port}", "localhost", f"LocalHost:{serving.port}", "localhost.", "127.1.2.3",
                 "[::1]", f"[::1]:{serving.port}"):
        assert request(serving, host=host)[0] == 200, host
    monkeypatch.setenv("CAPIBARA_MONITOR_HOSTS", "tunnel.example,other.example")
    with TPUMonitor(1, True, 0, hosts=["Node7.example"]) as named:
        for host in ("node7.example:9090", "NODE7.EXAMPLE", "tunnel.example", "other.example", "127.0.0.1"):
            assert request(named, host=host)[0] == 200, host
        assert request(named, host="node8.example")[0] == 403
    with TPUMonitor(1, True, 0, address="0.0.0.0") as wide:  # any address may be this machine's, but no name is
        assert request(wide, host="192.0.2.7:9090")[0] == 200
        assert request(wide, host="evil.example")[0] == 403
    with pytest.raises(TypeError, match="expected a list of names .argument 'hosts'., got 'node7'"):
        TPUMonitor(1, True, 0, hosts="node7")


def test_malformed_requests_are_told_so(serving):
    for data, status in ((b"\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"GET / HTTP/2\r\nHost: localhost\r\n\r\n", 400),
                         (b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400), (b"GET / \0 HTTP/1.1\r\n\r\n", 400),
                         (b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", 400), (b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n", 400),
                         (b"\x16\x03\x01\x02\x00\x01\x00" + b"\0" * 50 + b"\n\n", 400),
                         (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000, 431), (b"A" * 100_000, 431),
                         (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
                         (b"GET /%2e%2e/etc/passwd HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),
                         (b"DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
                         (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 405)):
        answer = raw(serving, data)
        assert answer.startswith(b"HTTP/1.1 %d " % status), (data[:60], answer[:60])
    head, _, body = raw(serving, b"HEAD /metrics?x=1 HTTP/1.1\nHost: localhost\n\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK") and int(re.search(rb"Content-Length: (\d+)", head)[1]) > 500 and body == b""


def test_the_token_is_read_by_its_user_alone(serving, home):
    token = serving.link.split("#")[1]
    assert serving.link == f"http://127.0.0.1:{serving.port}/#{token}" and len(token) == 64
    for path in ("/", "/metrics", "/metrics.json", "/nowhere"):
        assert token not in request(serving, path)[1]
    assert token not in request(serving, "/capture", method="POST")[1]
    files = [file for file in home.iterdir() if file.read_text() == token]
    assert len(files) == 1
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600 and stat.S_IMODE(home.stat().st_mode) == 0o700
    serving.stop()
    assert not files[0].exists()


def test_profiles_are_taken_with_the_token_while_others_are_served(serving):
    token, during = serving.link.split("#")[1], []

    def hook(seconds):
        during.append(request(serving)[0])
        during.append(request(serving, "/capture", method="POST", **{"X-Capibara-Token": token})[0])
        return "taken"

    set_capture_hook(hook)
    try:
        for wrong in ({}, {"X-Capibara-Token": ""}, {"X-Capibara-Token": token[:-1]}, {"X-Capibara-Token": "0" * 64}):
            assert request(serving, "/capture", method="POST", **wrong)[0] == 403
        assert request(serving, "/capture", **{"X-Capibara-Token": token})[0] == 405
        assert during == []
        status, text = request(serving, "/capture", method="POST", **{"X-Capibara-Token": token})
        assert (status, json.loads(text), during) == (200, {"profile": "taken"}, [200, 409])
        set_capture_hook(lambda seconds: 1 / 0)
        status, text = request(serving, "/capture", method="POST", **{"X-Capibara-Token": token})
        assert status == 500 and "division by zero" in json.loads(text)["error"]
        set_capture_hook(None)
        assert request(serving, "/capture", method="POST", **{"X-Capibara-Token": token})[0] == 404
    finally:
        set_capture_hook(lambda seconds: "")


@pytest.mark.skipif(not Path(COMMAND).exists(), reason="the command line is not built")
def test_the_command_reads_the_token(serving, tmp_path):
    set_capture_hook(lambda seconds: "taken")
    top = [COMMAND, "top", str(serving.port)]
    done = subprocess.run([*top, "--link"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, serving.link + "\n"), done.stderr
    done = subprocess.run([*top, "--capture"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "taken\n"), done.stderr
    other = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "other")}
    for option in ("--link", "--capture"):
        done = subprocess.run([*top, option], capture_output=True, text=True, env=other)
        assert done.returncode == 1 and "has left its token in" in done.stderr and done.stdout == ""
