"""A local page that shows how a function is compiled: its jaxpr, StableHLO, loops, assembly, result and time.

    python -m capibara.playground [--port N] [--no-browser]

The page sends a program that defines `f` and `args` to this server, which runs it in a process of its own, with a time limit. The server
listens on 127.0.0.1 alone and runs only requests that carry the token of the link that it prints.
"""
import argparse
import hmac
import http.server
import io
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import webbrowser

from capibara import jax

_MAX_BYTES = 100_000
_MAX_SECONDS = 60
_MAX_SHOWN = 200_000  # characters of one text

EXAMPLE = """def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)

f = jax.grad(loss)
args = jnp.full((3, 2), 0.1), jnp.ones((4, 3))
"""


def evaluate(program: str) -> dict[str, str]:
    """Runs a program that defines a function `f` and its arguments `args`; returns texts by name, with `error` if it failed."""
    names = {"__name__": "playground", "jax": jax, "jnp": jax.numpy, "lax": jax.lax}
    texts, printed, shown = {}, io.StringIO(), sys.stdout
    sys.stdout = printed
    try:
        exec(compile(program, "playground", "exec"), names)
        if not callable(names.get("f")):
            raise TypeError("playground: the program defines no function `f`")
        args = names.get("args", ())
        args = args if isinstance(args, tuple) else (args,)
        texts["jaxpr"] = str(jax.make_jaxpr(names["f"])(*args))
        lowered = jax.jit(names["f"]).lower(*args)
        texts["StableHLO"] = lowered.as_text()
        started = time.perf_counter()
        compiled = lowered.compile()
        compile_seconds = time.perf_counter() - started
        texts["result"] = str(jax.block_until_ready(compiled(*args)))
        texts["time"] = _times(lambda: jax.block_until_ready(compiled(*args)), compile_seconds)
        texts["loops"] = compiled.as_text() or ""
        texts["assembly"] = _assembly(compiled)
    except Exception:
        texts["error"] = traceback.format_exc(limit=-4)
    finally:
        sys.stdout = shown
    if printed.getvalue():
        texts["printed"] = printed.getvalue()
    return {name: text[:_MAX_SHOWN] for name, text in texts.items()}


def _times(call, compile_seconds):
    rounds, stop = [], time.perf_counter() + 0.5
    while len(rounds) < 3 or (time.perf_counter() < stop and len(rounds) < 10000):
        started = time.perf_counter()
        call()
        rounds.append(time.perf_counter() - started)
    return (f"compiled in {compile_seconds * 1e3:.1f} ms\n{len(rounds)} calls: median {statistics.median(rounds) * 1e6:.1f} us, "
            f"fastest {min(rounds) * 1e6:.1f} us\n")


def _assembly(compiled):
    """The instructions of the program as an object file, which is compiled for one thread and for this processor."""
    if not shutil.which("objdump"):
        return "objdump is not installed (Debian: binutils)"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.o")
        try:
            compiled.write_object(path, os.path.join(folder, "f.h"), name="f")
        except Exception as error:
            return str(error)
        listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True)
    return listed.stdout.partition("Disassembly")[2].partition("\n")[2].strip() or listed.stderr


def _in_process(program):
    """evaluate() in a process of its own, which ends after _MAX_SECONDS."""
    command = [sys.executable, "-c", "import json, sys; from capibara import playground\n"
               "json.dump(playground.evaluate(sys.stdin.read()), sys.stdout)"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=_MAX_SECONDS, env=environment)
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"error": f"the program was stopped after {_MAX_SECONDS} s"}
    except ValueError:
        return {"error": f"the process ended with status {done.returncode}\n{done.stderr[-2000:]}"}


class _Handler(http.server.BaseHTTPRequestHandler):
    server_version = "capibara"
    protocol_version = "HTTP/1.1"
    timeout = 30

    def _answer(self, status, kind, body):
        body = body.encode()
        self.send_response(status)
        for name, value in (("Content-Type", kind + "; charset=utf-8"), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
                            ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                             "connect-src 'self'; img-src data:; frame-ancestors 'none'"), ("X-Content-Type-Options", "nosniff")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _refused(self):
        """Answers requests for other hosts, which a page elsewhere may have been made to send."""
        port = self.server.server_address[1]
        if self.headers.get("Host") in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return False
        self._answer(403, "text/plain", "the playground answers requests for 127.0.0.1 only\n")
        return True

    def do_GET(self):
        if self._refused():
            return
        if self.path != "/":
            return self._answer(404, "text/plain", "there is one page: /\n")
        self._answer(200, "text/html", _PAGE.replace("EXAMPLE", EXAMPLE))

    def do_POST(self):
        if self._refused():
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _MAX_BYTES:
            self.close_connection = True
            return self._answer(413, "text/plain", f"a program has at most {_MAX_BYTES} bytes\n")
        program = self.rfile.read(int(length))
        if not hmac.compare_digest(self.headers.get("X-Token", "").encode(), self.server.token.encode()):
            return self._answer(403, "text/plain", "the token is missing: open the link that the playground printed\n")
        with self.server.one_at_a_time:
            self._answer(200, "application/json", json.dumps(_in_process(program.decode(errors="replace"))))

    def log_message(self, *_):
        pass


def make_server(port: int = 0) -> http.server.ThreadingHTTPServer:
    """A server on 127.0.0.1 with a fresh token; `link` is the address with it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads = True
    server.token = secrets.token_urlsafe(24)
    server.one_at_a_time = threading.Lock()
    server.link = f"http://127.0.0.1:{server.server_address[1]}/#{server.token}"
    return server


def main(arguments: list[str] | None = None) -> int:
    """Serves the page until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m capibara.playground", description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1; by default a free one")
    parser.add_argument("--no-browser", action="store_true", help="print the link without opening it")
    options = parser.parse_args(arguments)
    try:
        server = make_server(options.port)
    except (OSError, OverflowError) as error:
        print(f"playground: cannot listen on 127.0.0.1:{options.port}: {error}", file=sys.stderr)
        return 1
    print(f"playground: {server.link} (Ctrl-C ends it)", flush=True)
    if not options.no_browser:
        webbrowser.open(server.link)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    return 0


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>capibara playground</title><link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; }
body { font: 15px system-ui, sans-serif; margin: 16px; max-width: 1500px; }
h1 { font-size: 18px; margin: 0 0 4px; } p { margin: 0 0 12px; opacity: .8; }
main { display: grid; grid-template-columns: minmax(280px, 2fr) minmax(320px, 3fr); gap: 16px; }
@media (max-width: 800px) { main { grid-template-columns: 1fr; } }
textarea, pre { font: 13px ui-monospace, monospace; border: 1px solid #8886; border-radius: 8px; padding: 10px; margin: 0; }
textarea { width: 100%; height: 60vh; box-sizing: border-box; tab-size: 4; }
pre { height: 60vh; box-sizing: border-box; overflow: auto; white-space: pre; }
button { font: inherit; padding: 4px 12px; border-radius: 6px; border: 1px solid #8888; cursor: pointer; }
button[aria-selected=true] { background: #3367d6; color: white; border-color: #3367d6; }
[role=tablist], .bar { display: flex; flex-wrap: wrap; gap: 6px; margin: 0 0 8px; align-items: center; }
</style></head><body>
<h1>capibara playground</h1>
<p>A program defines a function <code>f</code> and its arguments <code>args</code>; <code>jax</code>, <code>jnp</code> and <code>lax</code>
are imported.</p>
<main><section aria-label="program"><div class="bar"><button id="run">Run</button><span>Ctrl-Enter</span>
<span id="state" role="status"></span></div>
<label for="program" hidden>program</label><textarea id="program" spellcheck="false">EXAMPLE</textarea></section>
<section aria-label="results"><div role="tablist" id="tabs"></div><pre id="text" tabindex="0" role="tabpanel"></pre></section></main>
<script>
const names = ["jaxpr", "StableHLO", "loops", "assembly", "result", "time", "printed", "error"];
const field = document.getElementById("program"), state = document.getElementById("state"), tabs = document.getElementById("tabs");
const token = location.hash.slice(1); history.replaceState(null, "", "/");
let texts = {}, chosen = "jaxpr";
function draw() {
  const there = names.filter(name => name in texts);
  if (!there.includes(chosen)) chosen = there[0] ?? "jaxpr";
  tabs.replaceChildren(...there.map(name => {
    const button = document.createElement("button"); button.textContent = name; button.setAttribute("role", "tab");
    button.setAttribute("aria-selected", name === chosen); button.onclick = () => { chosen = name; draw(); }; return button;
  }));
  document.getElementById("text").textContent = texts[chosen] ?? "";
}
async function run() {
  state.textContent = "running ..."; const started = performance.now();
  try {
    const answer = await fetch("/", {method: "POST", headers: {"X-Token": token}, body: field.value});
    texts = answer.ok ? await answer.json() : {error: await answer.text()};
    if (texts.error) chosen = "error"; else if (chosen === "error") chosen = "jaxpr";
    state.textContent = ((performance.now() - started) / 1000).toFixed(1) + " s";
  } catch (error) { texts = {error: "the playground does not answer: " + error}; state.textContent = ""; }
  draw();
}
document.getElementById("run").onclick = run;
field.addEventListener("keydown", event => { if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); run(); } });
run();
</script></body></html>
"""


if __name__ == "__main__":
    sys.exit(main())
