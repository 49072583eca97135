"""The fused kernels on a GPU beside jax and PyTorch: times, shares of the machine's limit, and memory for temporaries, as one table.

    python3 benchmarks/gpu/kernels.py [--package FOLDER] [--small] [--seconds N] [NAME...]

FOLDER holds the Python package capibara (build/release/python). NAMEs choose rows that begin with one of them. Each library runs in a
process of its own, one after the other, on the platform that JAX_PLATFORMS names, cuda if it names none. The limits are a copy and a matmul
by PyTorch in the same run; backward passes are the difference of the row with gradient and the row without. The difference from jax is the
greatest among the first elements of the first results, as a share of the greatest value of each.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from timing import report, timed

HERE = Path(__file__).resolve().parent
CHECKED, RESULTS = 1024, 8  # elements of a result that are compared, and results


def chosen(rows, names):
    return [row for row in rows if not names or any(row.name.startswith(name) for name in names)]


def first_elements(jax, result):
    import numpy

    return [numpy.asarray(leaf.reshape(-1)[:CHECKED].astype("float32")).tolist() for leaf in jax.tree.leaves(result)[:RESULTS]]


def measure(jax, row, small):
    function, arguments = row.make(jax)
    compiled = jax.jit(function, donate_argnums=(0,) if row.carried else ()).lower(*arguments).compile()
    temporaries = compiled.memory_analysis().temp_size_in_bytes
    state = [arguments[0]]

    def call():
        result = compiled(state[0], *arguments[1:])
        if row.carried:
            state[0] = result
        return result
    found = first_elements(jax, call()) if row.compared else None
    start = timed(jax, 1, call, rounds=1)
    calls = 2 if small else max(1, min(50, int(0.04 / start)))
    return {"seconds": timed(jax, calls, call) / row.units, "temporaries": temporaries, "found": found}


def work(library, names, small):
    if library == "torch":
        return work_by_torch(names, small)
    if library == "capibara":
        import capibara.jax as jax
    else:
        import jax
    from kernel_rows import rows

    for row in chosen(rows(small), names):
        try:
            report(row.name, measure(jax, row, small), "row")
        except Exception as error:  # out of memory, or what this version does not have: the row stays empty
            print(f"{library}: {row.name}: {str(error)[:300]}", file=sys.stderr, flush=True)


def work_by_torch(names, small):
    import torch

    if not torch.cuda.is_available():
        return
    from kernel_rows import rows
    from torch_rows import call_for, limits
    from torch_rows import timed as timed_by_torch

    copy, matmul = limits(torch)
    report("limits", {"copy": copy, "matmul": matmul}, "row")
    for row in chosen(rows(small), names):
        call = call_for(torch, row.name)
        if call:
            report(row.name, {"seconds": timed_by_torch(torch, 10, call)}, "row")
        call = None
        torch.cuda.empty_cache()


def run(library, options):
    command = [sys.executable, str(HERE / "kernels.py"), "--work", library, *(["--small"] if options.small else []), *options.names]
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    environment.setdefault("JAX_PLATFORMS", "cuda")
    if library == "capibara":
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [options.package, os.environ.get("PYTHONPATH", "")]))
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=options.seconds)
        said = done.stdout
        if done.stderr.strip() and (done.returncode or f"{library}: " in done.stderr):
            print("\n".join(line[:300] for line in done.stderr.strip().splitlines()[-12:]), file=sys.stderr, flush=True)
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode()
        print(f"{library}: stopped after {options.seconds} s", file=sys.stderr, flush=True)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}")]
    return {line["name"]: line["value"] for line in lines}


def difference(ours, theirs):
    if not ours or not theirs:
        return ""
    shares = [max(abs(x - y) for x, y in zip(a, b, strict=True)) / max(*map(abs, b), 1e-30) for a, b in zip(ours, theirs, strict=True)]
    return f"{max(shares):.1e}"


def time_text(seconds):
    return "" if seconds is None else f"{seconds * 1e6:.0f} us" if seconds < 2e-3 else f"{seconds * 1e3:.2f} ms"


def memory_text(ours, theirs):
    if ours is None:
        return ""
    size = lambda value: f"{value / 1e6:.1f} MB"
    if theirs is None:
        return size(ours)
    return f"{size(ours)} of {size(theirs)}" + (f" ({100 * ours / theirs:.1f} %)" if theirs else "")


def share(row, seconds, limits):
    if not limits or not seconds:
        return ""
    part = max(row.bytes / limits["copy"], row.operations / limits["matmul"]) / seconds
    return f"{100 * part:.0f} %" if part else ""


def backward(row, rows, seconds, limits):
    """The share of the copy rate that the backward pass alone reaches: three of five arrays."""
    forward = next((other for other in rows if f"{other.name} with gradient" == row.name), None)
    if not forward or not limits or not row.bytes or forward.name not in seconds or row.name not in seconds:
        return ""
    alone = seconds[row.name] - seconds[forward.name]
    return f"{100 * (row.bytes - forward.bytes) / limits['copy'] / alone:.0f} %" if alone > 0 else ""


def table(rows, found):
    limits = found["torch"].get("limits")
    if limits:
        print(f"Copy {limits['copy'] * 1e-12:.2f} TB/s, matmul {limits['matmul'] * 1e-12:.0f} TFLOP/s.\n")
    print("| | capibara | jax | | torch | | of the limit | backward alone | asked | temporaries, of jax's | difference |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    seconds = {name: value["seconds"] for name, value in found["capibara"].items()}
    for row in rows:
        ours, jax, torch = (found[library].get(row.name, {}) for library in ("capibara", "jax", "torch"))
        own = ours.get("seconds")
        ratio = lambda other: f"{other['seconds'] / own:.1f}x" if own and other.get("seconds") else ""
        print(f"| {row.name} | {time_text(own)} | {time_text(jax.get('seconds'))} | {ratio(jax)} | {time_text(torch.get('seconds'))} | "
              f"{ratio(torch)} | {share(row, own, limits)} | {backward(row, rows, seconds, limits)} | {row.asked} | "
              f"{memory_text(ours.get('temporaries'), jax.get('temporaries'))} | {difference(ours.get('found'), jax.get('found'))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", default=str(HERE.parents[1] / "build" / "release" / "python"))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=int, help="what a library may take; rows that it did not reach stay empty")
    parser.add_argument("--work", choices=["capibara", "jax", "torch"], help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.names, options.small)
    from kernel_rows import rows

    table(chosen(rows(options.small), options.names), {library: run(library, options) for library in ("torch", "capibara", "jax")})


if __name__ == "__main__":
    main()
