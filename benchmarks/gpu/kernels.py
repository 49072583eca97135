"""The fused kernels on a GPU next to jax and PyTorch: times, shares of the machine's limit, and memory for temporaries, as one table.

    python3 benchmarks/gpu/kernels.py [--package FOLDER] [--python INTERPRETER] [--seconds N] [--row-seconds N] [--cache FOLDER]
                                      [--json FILE] [NAME...]

FOLDER holds the Python package capibara (build/release/python), which INTERPRETER runs where other libraries need another Python. NAMEs
choose rows that contain one of them. Each library has one process, which keeps its compiled programs; a row is prepared by all of them
and then timed alternately, four times. Lines are printed as rows are measured. A library that takes more than --row-seconds for a row is
stopped and restarted for the next, and after --seconds the table ends with the names of the rows that it did not reach. --cache keeps
compiled programs of jax and capibara for later runs. Libraries run on the platform that JAX_PLATFORMS names, cuda if it names none. The
limits are a copy and a matmul by PyTorch in the same run; backward passes are the difference of the row with gradient and the row
without. The difference from jax is the largest among some elements of the first results, as a share of the largest of them in each.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from kernel_rows import rows
from kernel_table import COLUMNS, HEAD, limits_text, line
from processes import Answering

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from figures import text_of  # noqa: E402

LIBRARY = {"capibara": "capibara", "jax": "jax", "cudnn": "jax", "torch": "torch"}  # the process that measures each column
MEMORY = {"capibara": "0.15", "jax": "0.8", "torch": "0"}  # shares of the device's memory
VISITS = 4


def environment(library, options):
    given = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false", XLA_PYTHON_CLIENT_MEM_FRACTION=MEMORY[library])
    given.setdefault("JAX_PLATFORMS", "cuda")
    if options.cache:
        folder = Path(options.cache).resolve() / library
        given.update({"CAPIBARA_CACHE": str(folder)} if library == "capibara" else
                     {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                      "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"})
    if library == "capibara":
        given["PYTHONPATH"] = os.pathsep.join(filter(None, [options.package, os.environ.get("PYTHONPATH", "")]))
    return given


def workers(options):
    flags = [*(["--small"] if options.small else []), *(["--quick"] if options.quick else [])]
    python = {"capibara": options.python}
    return {library: Answering([python.get(library, sys.executable), str(HERE / "kernel_worker.py"), library, *flags],
                               environment(library, options)) for library in options.libraries}


def columns(row, found):
    """The columns of a row whose processes are running."""
    has = {"capibara": True, "jax": row.by_jax, "cudnn": row.cudnn, "torch": row.torch}
    return [column for column in COLUMNS if has[column] and LIBRARY[column] in found]


class Run:
    def __init__(self, options):
        self.options, self.workers = options, workers(options)
        self.deadline = time.monotonic() + options.seconds
        self.limits, self.forward = None, {}

    def until(self):
        return min(self.deadline, time.monotonic() + self.options.row_seconds)

    def measure_limits(self):
        if "torch" in self.workers and not self.options.small:
            self.workers["torch"].ask(do="limits")
            answer = self.workers["torch"].answer(self.until())
            self.limits = None if "error" in answer else answer

    def prepare(self, row, asked):
        """The answer for each column; a process that ran out of memory is restarted and tries again without leftovers of earlier rows."""
        answers = self.prepare_once(row, asked)
        full = [column for column in asked if "RESOURCE_EXHAUSTED" in answers[column].get("error", "")]
        if not full:
            return answers
        for library in {LIBRARY[column] for column in full}:
            self.workers[library].end()
        again = [column for column in asked if LIBRARY[column] in {LIBRARY[other] for other in full}]
        return {**answers, **self.prepare_once(row, again)}

    def prepare_once(self, row, asked):
        """The answer for each column: processes work in parallel, the columns of one process one after the other."""
        answers, waiting, until = {}, {}, self.until()
        for column in asked:
            self.workers[LIBRARY[column]].ask(do="prepare", row=row.name, column=column)
            waiting.setdefault(LIBRARY[column], []).append(column)
        for library, own in waiting.items():
            for column in own:
                worker = self.workers[library]
                answers[column] = worker.answer(until) if worker.process else {"error": "too long: stopped"}
        return answers

    def time(self, row, asked):
        seconds, until = {column: [] for column in asked}, self.until()
        for visit in range(1 if self.options.quick else VISITS):
            # Rotates the order: what ran before determines how hot the device is.
            for column in asked[visit % len(asked):] + asked[:visit % len(asked)] if asked else []:
                worker = self.workers[LIBRARY[column]]
                if worker.process:
                    worker.ask(do="time", row=row.name, column=column)
                    seconds[column] += worker.answer(until).get("seconds", [])
        return {column: statistics.median(found) for column, found in seconds.items() if found}

    def drop(self):
        for worker in self.workers.values():
            if worker.process:
                worker.ask(do="drop")
                worker.answer(self.until())

    def measure(self, row):
        answers = self.prepare(row, columns(row, self.workers))
        good = {column: answer for column, answer in answers.items() if "error" not in answer}
        seconds = self.time(row, list(good))
        self.drop()
        record = {"name": row.name, "subject": row.subject, "floors": row.floors, "seconds": seconds,
                  "temporaries": {column: answer["temporaries"] for column, answer in good.items() if "temporaries" in answer},
                  "difference": difference(*(good.get(column, {}).get("found") for column in ("capibara", "jax"))),
                  "failed": {column: answer["error"] for column, answer in answers.items() if "error" in answer},
                  "prepared": {column: answer.get("prepared") for column, answer in good.items()}}
        record.update(self.shares(row, seconds.get("capibara")))
        return record

    def shares(self, row, seconds):
        """The share of the limit, and the share of the copy rate that the backward pass alone reaches."""
        found = {"share": None, "backward": None}
        if not self.limits or not seconds:
            return found
        least = lambda row: max(row.bytes / self.limits["copy"], row.operations / self.limits["matmul"])
        found["share"] = least(row) / seconds if least(row) else None
        earlier = self.forward.get(row.name.removesuffix(" with gradient")) if row.name.endswith(" with gradient") else None
        if earlier and seconds > earlier[0]:
            found["backward"] = (least(row) - earlier[1]) / (seconds - earlier[0])
        self.forward[row.name] = seconds, least(row)
        return found

    def end(self):
        for worker in self.workers.values():
            worker.end()


def difference(ours, theirs):
    if not ours or not theirs:
        return None
    shares = [max(abs(x - y) for x, y in zip(a, b, strict=True)) / max(map(abs, b)) for a, b in zip(ours, theirs, strict=True) if any(b)]
    return max(shares, default=None)


def versions():
    """A description of the device and versions measured."""
    ask = ("import importlib.metadata as m; import jax; print(jax.devices()[0].device_kind + ', jax ' + jax.__version__ + "
           "', torch ' + m.version('torch'))")
    given = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    return subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, env=given).stdout.strip()


def table(options):
    """Prints rows as they are measured; returns the measured rows, and the names of the others."""
    run, left = Run(options), [row for row in rows(options.small) if not options.names or any(name in row.name for name in options.names)]
    kept = {"machine": versions(), "limits": None, "rows": [], "missing": []}
    for worker in run.workers.values():
        worker.start()
    run.measure_limits()
    kept["limits"] = run.limits
    print(*([limits_text(run.limits), ""] if run.limits else []), *HEAD, sep="\n", flush=True)
    while left and time.monotonic() < run.deadline:
        record = run.measure(left[0])
        if time.monotonic() >= run.deadline and "capibara" not in record["seconds"]:
            break
        left.pop(0)
        kept["rows"].append(record)
        print(line(record), flush=True)
        for column, why in record["failed"].items():
            print(f"{column}: {record['name']}: {why}", file=sys.stderr, flush=True)
        keep(options, kept)
    run.end()
    kept["missing"] = [row.name for row in left]
    keep(options, kept)
    if left:
        print(f"\nNot reached within {options.seconds} s: {'; '.join(kept['missing'])}.", flush=True)


def keep(options, kept):
    if options.json:
        Path(options.json).write_text(text_of(kept))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", default=str(HERE.parents[1] / "build" / "release" / "python"))
    parser.add_argument("--python", default=sys.executable, help="the interpreter that the package was built for")
    parser.add_argument("--seconds", type=float, default=900, help="of the whole run")
    parser.add_argument("--row-seconds", type=float, default=90, help="of one row")
    parser.add_argument("--cache", help="a folder for compiled programs")
    parser.add_argument("--json", help="also write the figures into this file")
    parser.add_argument("--libraries", type=lambda text: text.split(","), default=["capibara", "jax", "torch"], help="by commas")
    parser.add_argument("--small", action="store_true", help="small shapes: whether it runs")
    parser.add_argument("--quick", action="store_true", help="one call each: compiles everything")
    parser.add_argument("names", nargs="*")
    table(parser.parse_args())


if __name__ == "__main__":
    main()
