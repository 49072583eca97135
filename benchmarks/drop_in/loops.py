"""Steady-state times of libraries' loops on capibara and jax: loops.py [--rounds N] [--json FILE] [NAME...], in build/venv.

    PYTHONPATH=build/release/python build/venv/bin/python benchmarks/drop_in/loops.py diffrax optimistix

Both run the programs of loop_programs.py whose name contains NAME (all without one), each in its own process. A program is compiled
in both, then rounds of calls of a few milliseconds each alternate; the best time of a call counts. `calls` is the number of Python
calls in one run of the compiled program, and `differs` is the largest difference from jax's results as a share of the largest.
dynamiqs is measured if it is installed.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROUND_SECONDS = 0.02


def work():
    """One library's side: returns the names of programs, a result for each, and times on request."""
    import jax
    import loop_programs
    import numpy as np

    answers, sys.stdout = os.fdopen(os.dup(1), "wb"), sys.stderr
    makers, ready = loop_programs.programs(sys.argv[2:]), {}

    def answer(value):
        pickle.dump(value, answers)
        answers.flush()

    answer(list(makers))
    for line in sys.stdin:
        what, name = line.strip().split(" ", 1)
        if what == "prepare":
            function, arguments = makers[name]()
            ready = {"function": jax.jit(function), "arguments": arguments}
            begin = time.perf_counter()
            results = jax.block_until_ready(ready["function"](*arguments))
            first = time.perf_counter() - begin
            answer((first, [np.asarray(leaf) for leaf in jax.tree.leaves(results)]))
        elif what == "calls":
            answer(calls_of(jax, **ready))
        else:
            answer(best_time(jax, **ready))


def best_time(jax, function, arguments):
    best, end = float("inf"), time.perf_counter() + ROUND_SECONDS
    while True:
        begin = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best


def calls_of(jax, function, arguments):
    """Python calls while the program runs: on this thread, and from programs on other threads."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event == "call"

    counted = getattr(sys.modules.get("capibara._core"), "host_calls", lambda: 0)
    before = counted()
    sys.setprofile(see)
    results = function(*arguments)
    sys.setprofile(None)
    jax.block_until_ready(results)
    return count + counted() - before


class Library:
    """A process that runs the programs."""

    def __init__(self, command, names):
        self.process = subprocess.Popen([*command, __file__, "--work", *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "JAX_PLATFORMS": "cpu"})
        self.names = pickle.load(self.process.stdout)

    def ask(self, what, name):
        self.process.stdin.write(f"{what} {name}\n".encode())
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)


def difference(ours, theirs):
    """The largest difference over all results, each as a share of its largest value."""
    import numpy as np
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if not np.issubdtype(b.dtype, np.inexact):
            worst = max(worst, float(not np.array_equal(a, b)))
        elif b.size:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            wide = np.complex128 if np.iscomplexobj(b) else np.float64
            gap = np.where(same, 0.0, np.abs(np.where(same, 0, a).astype(wide) - np.where(same, 0, b).astype(wide)))
            worst = max(worst, float(gap.max() / max(np.abs(b[np.isfinite(b)]).max(initial=0.0), 1e-30)))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json")
    options = parser.parse_args()
    ours = Library([sys.executable, "-m", "capibara"], options.names)
    theirs = Library([sys.executable], options.names)
    if not ours.names:
        sys.exit(f"no program is named {' or '.join(options.names)}; without a name all run")
    rows = []
    print(f"{'program':38} {'capibara us':>12} {'jax us':>10} {'ratio':>6} {'calls':>6} {'first s':>8} {'jax s':>6} {'differs':>8}")
    for name in ours.names:
        first, results = ours.ask("prepare", name)
        jax_first, expected = theirs.ask("prepare", name)
        own, peer = float("inf"), float("inf")
        for _ in range(options.rounds):
            own, peer = min(own, ours.ask("time", name)), min(peer, theirs.ask("time", name))
        calls = ours.ask("calls", name)
        rows.append({"program": name, "seconds": own, "jax": peer, "ratio": own / peer, "calls": calls, "first": first,
                     "jax first": jax_first, "differs": difference(results, expected)})
        print(f"{name:38} {own * 1e6:12.1f} {peer * 1e6:10.1f} {own / peer:6.2f} {calls:6} {first:8.2f} {jax_first:6.2f} "
              f"{rows[-1]['differs']:8.1e}", flush=True)
    worst = max(rows, key=lambda row: row["ratio"])
    print(f"{len(rows)} programs, the slowest beside jax: {worst['program']} at {worst['ratio']:.2f} of its time; "
          f"{sum(row['calls'] for row in rows)} calls of Python")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        sys.path.insert(0, str(FOLDER))
        work()
    else:
        main()
