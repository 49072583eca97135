"""The playground: what a program becomes, and the server that takes programs from its own page alone."""

import http.client
import json
import threading

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

from capibara import playground


def test_an_example_is_shown_in_every_form():
    texts = playground.evaluate(playground.EXAMPLE)
    assert "error" not in texts, texts["error"]
    assert texts["jaxpr"].startswith("{ lambda ;") and "tanh" in texts["jaxpr"]
    assert "stablehlo.tanh" in texts["StableHLO"] and "load" in texts["loops"]
    assert texts["result"].count("[") == 4  # f32[3,2]
    assert "compiled in" in texts["time"] and "median" in texts["time"]
    assert "ret" in texts["assembly"] or "objdump" in texts["assembly"]


@pytest.mark.parametrize("program, error", [
    ("f = lambda x: x @ x\nargs = jnp.ones((2, 3))", "contracting"),
    ("x = 1", "defines no function `f`"),
    ("f = lambda x: (", "SyntaxError"),
    ("f = lambda x: x if x > 0 else -x\nargs = 1.0", "TracerBoolConversionError"),
])
def test_errors_are_shown(program, error):
    assert error in playground.evaluate(program)["error"]


def test_prints_are_shown_apart(capsys):
    texts = playground.evaluate("print('traced once')\nf = lambda x: x + 1\nargs = (1.0,)")
    assert texts["printed"] == "traced once\n" and texts["result"] == "2.0"
    assert capsys.readouterr().out == ""


@pytest.fixture
def server():
    made = playground.make_server()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def ask(server, method, path="/", body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=120)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_page_runs_programs_with_its_token(server):
    status, page = ask(server, "GET")
    assert status == 200 and playground.EXAMPLE.splitlines()[0] in page and server.token not in page
    status, answer = ask(server, "POST", body="f = lambda x: x * 2\nargs = (21,)", X_Token=server.token)
    assert status == 200 and json.loads(answer)["result"] == "42"


def test_others_are_refused(server):
    program = "f = lambda x: x\nargs = 1"
    assert ask(server, "POST", body=program)[0] == 403
    assert ask(server, "POST", body=program, X_Token="guessed")[0] == 403
    assert ask(server, "POST", body=program, X_Token=server.token, Host="example.org")[0] == 403
    assert ask(server, "GET", Host="example.org")[0] == 403
    assert ask(server, "GET", "/other")[0] == 404
    assert ask(server, "POST", body="x" * 200_000, X_Token=server.token)[0] == 413


def test_a_program_that_does_not_end_is_stopped(server, monkeypatch):
    monkeypatch.setattr(playground, "_MAX_SECONDS", 3)
    status, answer = ask(server, "POST", body="while True: pass", X_Token=server.token)
    assert status == 200 and "stopped after 3 s" in json.loads(answer)["error"]
    status, answer = ask(server, "POST", body="import os; os._exit(3)", X_Token=server.token)
    assert "ended with status 3" in json.loads(answer)["error"]


def test_a_port_in_use_is_named(server, capsys):
    assert playground.main(["--no-browser", "--port", str(server.server_address[1])]) == 1
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err
