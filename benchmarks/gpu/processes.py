"""Processes that write lines of JSON: yields their lines as they arrive, and their answers before a deadline."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time


def lines(command, environment, seconds):
    """Yields the lines that a command prints, as they arrive; kills it after `seconds`, with a line on our stderr."""
    process, said, deadline = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment), b"", time.monotonic() + seconds
    try:
        while select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
            piece = os.read(process.stdout.fileno(), 1 << 20)
            if not piece:
                return
            *whole, said = (said + piece).split(b"\n")
            yield from (text.decode(errors="replace") for text in whole)
        print(f"stopped after {seconds:g} s: {' '.join(map(str, command))}", file=sys.stderr, flush=True)
    finally:
        process.kill()
        process.wait()


class Answering:
    """A process that is started at the first request, and restarted after it died or was killed for taking too long."""

    def __init__(self, command, environment):
        self.command, self.environment, self.process = command, environment, None

    def start(self):
        if self.process is None:
            self.said, self.errors = b"", tempfile.TemporaryFile()
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            env=self.environment)

    def ask(self, **request):
        self.start()
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer will report that it died

    def answer(self, deadline):
        """Its answer before the deadline; otherwise {"error": ...}, and the process is killed."""
        while b"\n" not in self.said:
            if not select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
                return self.end("too long: stopped")
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                return self.end("died")
            self.said += piece
        first, self.said = self.said.split(b"\n", 1)
        return json.loads(first)

    def end(self, why=""):
        if self.process is None:
            return {"error": why}
        self.process.kill()
        self.process.wait()
        self.process = None
        self.errors.seek(0)
        last = self.errors.read().decode(errors="replace").strip().splitlines()[-3:] if why == "died" else []
        return {"error": ": ".join([why, *(text[:200] for text in last)])}
