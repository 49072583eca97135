"""Shared by the tests of running trainings: the command, a small model, a text, and the content of a folder."""

import os
import re
import signal
import subprocess
from pathlib import Path

COMMAND = os.environ.get("CAPIBARA_COMMAND", "build/capibara")
TEXT = "".join(f"The {name} has {count} apples and the {name} eats one of them.\n"
               for count in range(2, 60) for name in ("fox", "goat", "heron", "crane"))
SMALL = ["--steps", "60", "--layers", "attention,mamba", "--width", "16", "--heads", "2", "--hidden", "16", "--vocabulary", "256",
         "--batch", "2", "--length", "16", "--checkpoint-every", "2", "--warmup", "2", "--held-out", "0.2"]
FEW_SAVES = [*SMALL, "--checkpoint-every", "20"]  # the last value counts


def run(*arguments, **options):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=300, **options)


def hear_signals():
    """Restores signals that nohup and shells without job control ignore in their children."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def start(*arguments, **options):
    return subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors="replace", preexec_fn=hear_signals, **options)


def wait_for_step(process):
    """Waits for a line that reports a step."""
    line = next((line for line in process.stdout if line.startswith("  step")), None)
    assert line is not None, f"no step was made, code {process.wait()}"
    return line


def losses(folder):
    return (Path(folder) / "losses.txt").read_text().split()


def content(folder):
    """Every file below a folder with its bytes, and every folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in Path(folder).rglob("*")}


def steps_of(folder):
    """Runs `checkpoint verify` on the folder's steps: (exit code, text)."""
    done = run("checkpoint", "verify", Path(folder) / "checkpoints")
    return done.returncode, done.stdout + done.stderr


def number_in(pattern, text):
    found = re.search(pattern, text)
    assert found, (pattern, text)
    return float(found[1])
