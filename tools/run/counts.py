"""Suites, their counts, and how the exit of a program is described."""

import re
import signal
from dataclasses import dataclass, field

import patience

SHARE = 10  # ./run test runs one in this many cases of wide tests
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")


@dataclass
class Counts:
    """The results of one suite; `failures` names each failed test and why."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)
    note: str = ""

    def fail(self, name, why):
        self.failed += 1
        self.failures.append((name, why.strip()))


@dataclass
class Suite:
    """A named group of tests: `target` is what must be built for it, `preset` an additional build it needs."""

    name: str
    kind: str
    run: object
    target: str = "all"
    preset: str = ""
    quick: bool = True

    @property
    def family(self):
        """The name before the slash: `python` of `python/kernels`."""
        return self.name.split("/")[0]

    @property
    def label(self):
        return self.name if self.family == self.kind else f"{self.kind} {self.name}".strip()


def tail(log, lines=12):
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def ending(status):
    if status is None:
        return f"used too much processor time, or none for {patience.IDLE_SECONDS} s: it hangs"
    return f"ended with signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
