"""Starts programs as several processes with `capibara launch`, and checks what they leave behind."""
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = Path(os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara"))
PROGRAM = BUILD / "tests" / "exchange_program"
LIMIT = 300  # seconds for one launch: far more than it takes
missing = next((f"no {what}" for what, there in (("capibara", COMMAND.exists()), ("exchange_program", PROGRAM.exists()),
                                                  ("module for MPI", (BUILD / "lib" / "libcapibara_mpi.so").exists()),
                                                  ("mpirun", shutil.which("mpirun"))) if not there), None)


class Launch:
    """A running group; `lines[2]` are the lines of process 2 so far, `said` those of the launcher."""

    def __init__(self, count, program, *flags, **environment):
        command = [COMMAND, "launch", "-n", count, *flags, "--", *program]
        path = os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python"))
        variables = {**os.environ, "PYTHONPATH": path, "CAPIBARA_TEST_LAUNCH": mark(self), **environment}
        self.child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                      text=True, env=variables)
        self.lines, self.said, self.all = {}, [], []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.child.stdout:
            line = line.rstrip("\n")
            self.all.append(line)
            number, closing, rest = line[1:].partition("] ") if line.startswith("[") else ("", "", "")
            if closing and number.isdigit():
                self.lines.setdefault(int(number), []).append(rest)
            else:
                self.said.append(line)

    def wait_for(self, text, count):
        """Waits until `count` processes have printed a line with the text; returns the lines by process."""
        end = time.monotonic() + LIMIT
        while True:
            found = {number: line for number, lines in list(self.lines.items()) for line in list(lines) if text in line}
            if len(found) >= count:
                return found
            if time.monotonic() > end or (self.child.poll() is not None and not self._reader.is_alive()):
                raise AssertionError(f"{len(found)} of {count} processes said {text!r}:\n" + "\n".join(self.all))
            time.sleep(0.05)

    def finish(self):
        """Waits for the exit code, and checks that nothing is left behind."""
        try:
            code = self.child.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise AssertionError("still running:\n" + "\n".join(self.all)) from None
        self._reader.join(timeout=60)
        left = what_is_left(mark(self))
        assert not left, (left, self.all)
        return code

    def text(self, number):
        return "\n".join(self.lines.get(number, []))


def mark(launch):
    """A value in the environment that identifies all processes of a launch."""
    return f"{os.getpid()}-{id(launch)}"


def marked_processes(value):
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"CAPIBARA_TEST_LAUNCH={value}\0".encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            pass
    return found


def what_is_left(value):
    """Remaining processes of the launch, and files in shared memory; both may take a moment to disappear."""
    for _ in range(100):
        left = [f"process {process}" for process in marked_processes(value)]
        shared = Path("/dev/shm")
        own = [path for path in shared.iterdir() if path.name.startswith("capibara-launch-")] if shared.exists() else []
        left += [str(path) for path in own if not Path(f"/proc/{path.name.split('-')[2]}").exists()]
        if not left:
            return []
        time.sleep(0.1)
    return left


def run(count, program, *flags, **environment):
    """Runs to completion; returns (exit code, launch)."""
    launch = Launch(count, program, *flags, **environment)
    return launch.finish(), launch


def python(program):
    """The command that runs a Python program given as text."""
    return [sys.executable, "-c", textwrap.dedent(program)]
