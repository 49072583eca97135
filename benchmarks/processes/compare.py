"""Sums and training steps between processes: capibara over MPI beside jax and torch over gloo and MPI_Allreduce itself.

    PYTHONPATH=build/release/python python3 benchmarks/processes/compare.py [--processes 4] [--rounds 3] [--json FILE]

Rounds of the libraries take turns; the best of each is printed. Every process has the same share of the processors.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROWS = [("psum 4 KiB", "psum", 4 << 10, {"torch": 15, "jax": 15, "mpi": 1 / 3}), ("psum 1 MiB", "psum", 1 << 20, {}),
        ("psum 16 MiB", "psum", 16 << 20, {"torch": 1, "mpi": 1}), ("GPT step, data parallel", "gpt", 0, {"jax": 1.5})]
LIBRARIES = {"psum": ("capibara", "jax", "torch", "mpi"), "gpt": ("capibara", "jax")}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def figure(library, what, size, processes):
    """Microseconds, or why there are none."""
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    environment = dict(os.environ, GROUP_PORT=free_port(), OMP_NUM_THREADS=threads, CAPIBARA_NUM_THREADS=threads,
                       PYTHONPATH=os.pathsep.join([str(FOLDER), str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]))
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(processes)]
    command = launcher + [sys.executable, str(FOLDER / "group.py"), library, what, str(size)]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None, "no end after 120 s"
    for line in ended.stdout.splitlines():
        if line.startswith("microseconds "):
            return float(line.split()[1]), None
    said = [line for line in ended.stderr.splitlines() if any(character.isalpha() for character in line)]
    return None, said[-1] if said else f"status {ended.returncode}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    record = {"processes": options.processes, "cores": os.cpu_count(), "rows": []}
    for name, what, size, asked in ROWS:
        best, why = {}, {}
        for number in range(options.rounds):
            order = LIBRARIES[what]
            for library in order[number % len(order):] + order[:number % len(order)]:
                value, reason = figure(library, what, size, options.processes)
                if value is None:
                    why[library] = reason
                else:
                    best[library] = min(value, best.get(library, value))
        ratios = {library: best[library] / best["capibara"] for library in best if library != "capibara" and "capibara" in best}
        missed = [f"{ratio:.2f}x {library}, not {asked[library]:.2g}" for library, ratio in ratios.items()
                  if ratio < asked.get(library, 0)]
        record["rows"].append({"name": name, "microseconds": best, "ratios": ratios, "missed": missed, "failed": why})
        figures = "  ".join(f"{library} {value:.1f} us" for library, value in best.items())
        shares = "  ".join(f"{ratio:.2f}x {library}" for library, ratio in ratios.items())
        print(f"{name:24} {figures}   {shares}" + "".join(f"\n  missed: {text}" for text in missed)
              + "".join(f"\n  {library}: {text}" for library, text in why.items()), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
