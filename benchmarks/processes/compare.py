"""Sums and training steps between processes: capibara over MPI, jax and torch over gloo, and plain MPI_Allreduce.

    PYTHONPATH=build/release/python python3 benchmarks/processes/compare.py [--processes 4] [--rounds 3] [--only TEXT]
        [--seconds S] [--json FILE]

Rounds of the libraries alternate; the best of each is printed, one line for a row. Every process has the same share of the processors.
A figure that takes longer than a minute is abandoned; after S seconds no more are started.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROWS = [("psum 4 KiB", "psum", 4 << 10, {"torch": 15, "jax": 15, "mpi": 1 / 3}), ("psum 1 MiB", "psum", 1 << 20, {}),
        ("psum 16 MiB", "psum", 16 << 20, {"torch": 1, "mpi": 1}), ("GPT step, data parallel", "gpt", 0, {"jax": 1.5})]
LIBRARIES = {"psum": ("capibara", "jax", "torch", "mpi"), "gpt": ("capibara", "jax")}
# Only capibara: the share of the exchange's time that a step hides behind its matmuls, and a matmul whose operand travels in parts.
OVERLAP = ("overlap of 8 sums of 4 MiB", ("step", "compute", "exchange"), 0.6)
RING = ("ring product", ("gather", "ring"), 1.2)
FIGURE_SECONDS = 60


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def figure(library, what, size, processes):
    """(microseconds, None), or (None, the reason)."""
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    environment = dict(os.environ, GROUP_PORT=free_port(), OMP_NUM_THREADS=threads, CAPIBARA_NUM_THREADS=threads,
                       PYTHONPATH=os.pathsep.join([str(FOLDER), str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]))
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(processes)]
    command = launcher + [sys.executable, str(FOLDER / "group.py"), library, what, str(size)]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=FIGURE_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"no end after {FIGURE_SECONDS} s"
    for line in ended.stdout.splitlines():
        if line.startswith("microseconds "):
            return float(line.split()[1]), None
    said = [line.strip() for line in ended.stderr.splitlines() if "Error" in line]
    return None, said[-1][:160] if said else f"status {ended.returncode}"


def compared(name, what, size, asked, options):
    """A row of several libraries."""
    best, why = {}, {}
    for number in range(options.rounds):
        order = LIBRARIES[what]
        for library in order[number % len(order):] + order[:number % len(order)]:
            if time.monotonic() > options.end:
                why.setdefault(library, "no time left")
                continue
            value, reason = figure(library, what, size, options.processes)
            if value is None:
                why[library] = reason
            else:
                best[library] = min(value, best.get(library, value))
    ratios = {library: best[library] / best["capibara"] for library in best if library != "capibara" and "capibara" in best}
    missed = [f"{ratio:.2f}x {library}, not {asked[library]:.2g}" for library, ratio in ratios.items() if ratio < asked.get(library, 0)]
    return {"name": name, "microseconds": best, "ratios": ratios, "missed": missed, "failed": why}


def own(name, parts, asked, options):
    """A row of capibara only: figures of several programs."""
    best, why = {}, {}
    for _ in range(options.rounds):
        for part in parts:
            value, reason = (None, "no time left") if time.monotonic() > options.end else figure("capibara", part, 0, options.processes)
            if value is None:
                why[part] = reason
            else:
                best[part] = min(value, best.get(part, value))
    ratios = {}
    if all(part in best for part in parts):
        if "step" in parts:
            ratios["of the exchange hidden"] = (best["compute"] + best["exchange"] - best["step"]) / best["exchange"]
        else:
            ratios["gathered"] = best["gather"] / best["ring"]
    missed = [f"{ratio:.2f} {what}, not {asked:.2g}" for what, ratio in ratios.items() if ratio < asked]
    return {"name": name, "microseconds": best, "ratios": ratios, "missed": missed, "failed": why}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--json")
    options = parser.parse_args()
    options.end = time.monotonic() + options.seconds
    record = {"processes": options.processes, "cores": os.cpu_count(), "rows": []}
    rows = [(name, lambda row=(name, what, size, asked): compared(*row, options)) for name, what, size, asked in ROWS]
    rows += [(row[0], lambda row=row: own(*row, options)) for row in (OVERLAP, RING)]
    for name, measure in rows:
        if options.only not in name:
            continue
        row = measure()
        record["rows"].append(row)
        figures = "  ".join(f"{what} {value:.1f} us" for what, value in row["microseconds"].items())
        shares = "  ".join(f"{ratio:.2f}x {what}" for what, ratio in row["ratios"].items())
        print(f"{name:28} {figures}   {shares}" + "".join(f"   missed: {text}" for text in row["missed"])
              + "".join(f"   {what}: {text}" for what, text in row["failed"].items()), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
