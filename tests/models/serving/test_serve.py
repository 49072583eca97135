"""capibara serve, by OpenAI's client and by bare HTTP: answers, streams, limits, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
from operating import COMMAND, SMALL, TEXT, hear_signals, run  # noqa: E402


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "apples.txt").write_text(TEXT)
    done = run("train", str(folder / "apples.txt"), "--folder", str(folder / "apples"), *SMALL, "--checkpoint-every", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "apples"


class Server:
    def __init__(self, folder, *options, **environment):
        self.process = subprocess.Popen([COMMAND, "serve", str(folder), "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=hear_signals, env={**os.environ, **environment})
        line = self.process.stdout.readline()
        found = re.search(r"http://([\d.]+):(\d+)/v1", line)
        assert found, line + self.process.stderr.read()
        self.port, self.url = int(found[2]), f"http://{found[1]}:{found[2]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, path, body=None, headers=None):
        """(status, answer) of a request; the body is sent as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def complete(self, prompt="The fox has", **fields):
        status, text = self.ask("/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": 12, **fields})
        assert status == 200, text
        return json.loads(text)


@pytest.fixture(scope="module")
def server(trained):
    with Server(trained, "--slots", "3", "--capacity", "200") as running:
        yield running


def text_of(answer):
    return answer["choices"][0]["text"]


def test_an_answer_is_what_sample_writes(server, trained):
    done = run("sample", str(trained), "--prompt", "The fox has", "--tokens", "12", "--temperature", "0")
    assert done.returncode == 0, done.stderr
    answer = server.complete()
    assert "The fox has" + text_of(answer) == done.stdout.rstrip("\n")
    assert answer["object"] == "text_completion" and answer["model"] == "apples"
    assert answer["usage"] == {"prompt_tokens": 11, "completion_tokens": 12, "total_tokens": 23}
    assert answer["choices"][0]["finish_reason"] == "length"
    assert text_of(server.complete(echo=True)) == "The fox has" + text_of(answer)
    assert text_of(server.complete(prompt=list(b"The fox has"))) == text_of(answer)


def test_stop_texts_end_an_answer_before_them(server):
    whole = text_of(server.complete(max_tokens=30))
    stop = whole[7:9]
    for stream in (False, True):
        body = {"prompt": "The fox has", "temperature": 0, "max_tokens": 30, "stop": [stop], "stream": stream}
        status, text = server.ask("/v1/completions", body)
        assert status == 200
        if stream:
            events = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]
            got, reason = "".join(map(text_of, events)), events[-1]["choices"][0]["finish_reason"]
        else:
            got, reason = text_of(json.loads(text)), json.loads(text)["choices"][0]["finish_reason"]
        assert (got, reason) == (whole[:whole.index(stop)], "stop")


def test_values_that_change_nothing_are_accepted(server):
    neutral = {"n": 1, "best_of": 1, "presence_penalty": 0.0, "frequency_penalty": 0, "logprobs": None, "logit_bias": {}, "tools": [],
               "response_format": {"type": "text"}, "user": "somebody", "suffix": None}
    assert text_of(server.complete(**neutral)) == text_of(server.complete())


def test_the_same_seed_gives_the_same_text(server):
    texts = [text_of(server.complete(temperature=1.5, seed=seed, max_tokens=40)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert text_of(server.complete(temperature=1.5, top_k=1)) == text_of(server.complete())


@pytest.mark.parametrize("body, status, words", [
    (b"{", 400, "not valid JSON"), (b"[1]", 400, "JSON object"), ({}, 400, "'prompt' is missing"),
    ({"prompt": "x", "temperature": "hot"}, 400, "'temperature'"), ({"prompt": "x", "temperature": -1}, 400, "'temperature'"),
    ({"prompt": "x", "top_p": 0}, 400, "'top_p'"), ({"prompt": "x", "max_tokens": 0}, 400, "'max_tokens'"),
    ({"prompt": "x", "n": 2}, 400, "'n'"), ({"prompt": "x", "logprobs": 3}, 400, "'logprobs'"),
    ({"prompt": "x", "logprobs": True}, 400, "'logprobs' is not supported"),
    ({"prompt": "x", "suffix": "y"}, 400, "'suffix' is not supported"),
    ({"prompt": "x", "logit_bias": {"5": 1}}, 400, "'logit_bias'"),
    ({"prompt": "x", "presence_penalty": 1}, 400, "'presence_penalty'"), ({"prompt": ""}, 400, "no tokens"),
    ({"prompt": "x" * 500}, 400, "200"), ({"prompt": [999]}, 400, "'prompt'"), ({"prompt": ["a", "b"]}, 400, "'prompt'"),
    ({"prompt": "x", "stop": [""]}, 400, "'stop'"), ({"prompt": "x", "stop": list("abcde")}, 400, "'stop'"),
    ({"prompt": "x", "model": "gpt-9"}, 404, "'apples'"), ({"prompt": "x", "stream": "yes"}, 400, "'stream'"),
    (b"x" * (5 << 20), 413, "at most"),
])
def test_wrong_requests_are_refused_by_name(server, body, status, words):
    got, text = server.ask("/v1/completions", body)
    assert got == status and words in text, (got, text)
    assert text_of(server.complete())  # and the server serves on


def test_wrong_calls_are_refused(server):
    assert server.ask("/v1/completions")[0] == 405
    assert server.ask("/v1/embeddings", {})[0] == 404
    assert server.ask("/v1/completions", {"prompt": "x"}, {"Content-Type": "text/plain"})[0] == 415
    assert server.ask("/v1/models", headers={"Host": "evil.example"})[0] == 403
    status, text = server.ask("/v1/chat/completions", {"messages": [{"role": "user"}]})
    assert status == 400 and "'role' and 'content'" in text
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        assert b" 411 " in raw.recv(4096)


def test_health_models_and_metrics(server):
    assert server.ask("/health")[0] == 200
    models = json.loads(server.ask("/v1/models")[1])
    assert [model["id"] for model in models["data"]] == ["apples"]
    text = server.ask("/metrics")[1]
    assert int(re.search(r"^capibara_serve_generated_tokens_total (\d+)$", text, re.M)[1]) > 0
    assert int(re.search(r"^capibara_serve_waiting (\d+)$", text, re.M)[1]) == 0


def test_a_client_that_leaves_frees_its_slot(server):
    body = json.dumps({"prompt": "The fox has", "max_tokens": 180, "stream": True}).encode()
    for _ in range(6):  # twice the slots
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
            raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                        + str(len(body)).encode() + b"\r\n\r\n" + body)
            assert b"200" in raw.recv(64)
    assert text_of(server.complete())


def test_by_openais_client(server):
    openai = pytest.importorskip("openai", reason="OpenAI's client is not installed")
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    whole = client.completions.create(model="apples", prompt="The fox has", temperature=0, max_tokens=12)
    assert whole.choices[0].text == text_of(server.complete())
    pieces = client.completions.create(model="apples", prompt="The fox has", temperature=0, max_tokens=12, stream=True)
    assert "".join(piece.choices[0].text for piece in pieces) == whole.choices[0].text
    messages = [{"role": "system", "content": "Count."}, {"role": "user", "content": [{"type": "text", "text": "How many?"}]}]
    chat = client.chat.completions.create(model="apples", messages=messages, temperature=0, max_tokens=9)
    assert chat.choices[0].message.role == "assistant" and chat.usage.completion_tokens == 9
    # A tokenizer without the tokens of chats: lines "role: text".
    assert chat.choices[0].message.content == text_of(server.complete("system: Count.\nuser: How many?\nassistant: ", max_tokens=9))
    stream = list(client.chat.completions.create(model="apples", messages=messages, temperature=0, max_tokens=9, stream=True,
                                                 stream_options={"include_usage": True}))
    assert "".join(piece.choices[0].delta.content or "" for piece in stream if piece.choices) == chat.choices[0].message.content
    assert stream[-1].usage.total_tokens == chat.usage.total_tokens and [m.id for m in client.models.list()] == ["apples"]
    with pytest.raises(openai.BadRequestError, match="'top_p'"):
        client.completions.create(model="apples", prompt="x", top_p=7)
    with pytest.raises(openai.NotFoundError, match="apples"):
        client.completions.create(model="other", prompt="x")


def test_many_clients_get_their_own_answers(server):
    prompts = [f"The {name} has {count} apples" for name in ("fox", "goat", "heron", "crane") for count in range(2, 18)]
    alone = {prompt: text_of(server.complete(prompt, max_tokens=20)) for prompt in prompts[::8]}
    with ThreadPoolExecutor(64) as pool:
        texts = list(pool.map(lambda prompt: text_of(server.complete(prompt, max_tokens=20)), prompts))
    assert len(texts) == 64 and all(texts[prompts.index(prompt)] == text for prompt, text in alone.items())


def test_beyond_the_queue_requests_are_refused(trained):
    with Server(trained, "--slots", "1", "--queue", "2", "--capacity", "4000", "--max-tokens", "3000") as server:
        def one(_):
            return server.ask("/v1/completions", {"prompt": "x", "max_tokens": 600})
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(one, range(16)))
        counts = [sum(status == code for status, _ in answers) for code in (200, 429)]
        assert sum(counts) == 16 and counts[0] >= 1 and counts[1] >= 1, answers
        assert all("busy" in text for status, text in answers if status == 429)


def test_a_key_is_required_where_one_is_set(trained):
    with Server(trained, CAPIBARA_API_KEY="secret") as server:
        assert server.ask("/health")[0] == 200
        for headers in ({}, {"Authorization": "Bearer other"}):
            assert server.ask("/v1/models", headers=headers)[0] == 401
        assert server.ask("/v1/models", headers={"Authorization": "Bearer secret"})[0] == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_streams_with_an_error_and_the_server_with_0(trained, number):
    with Server(trained, "--capacity", "100000", "--max-tokens", "90000") as server:
        received = []

        def read():
            received.append(server.ask("/v1/completions", {"prompt": "x", "max_tokens": 90000, "stream": True})[1])
        reader = threading.Thread(target=read)
        reader.start()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "running 1" not in server.ask("/metrics")[1]:
            time.sleep(0.05)
        server.process.send_signal(number)
        assert server.process.wait(timeout=60) == 0, server.process.stderr.read()
        reader.join(60)
        assert "the server is stopping" in received[0].rstrip().split("\n\n")[-1], received[0][-300:]


def test_after_kill_9_the_port_is_free_again(trained):
    with Server(trained) as first:
        port = first.port
        first.process.kill()
        first.process.wait()
    again = subprocess.Popen([COMMAND, "serve", str(trained), "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert f":{port}/" in again.stdout.readline()
        taken = run("serve", str(trained), "--port", str(port))
        assert taken.returncode == 1 and "cannot listen" in taken.stderr
    finally:
        again.kill()
        again.wait()


@pytest.mark.parametrize("arguments, code, words", [
    (["no-such-folder"], 1, "no-such-folder"), (["--slots", "0"], 2, "--slots"), (["--port", "99999"], 2, "--port"),
    (["--timeout", "0"], 2, "--timeout"), (["a", "b"], 2, "one folder"), (["--weights", "int3", "."], 1, ""),
])
def test_wrong_starts_are_refused(arguments, code, words):
    done = run("serve", *arguments)
    assert done.returncode == code and words in done.stderr, done
