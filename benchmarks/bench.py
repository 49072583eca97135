"""The benchmark suite: each library runs in its own process, rounds are interleaved, results compared, figures printed and kept.

    ./run bench [--only NAME,...] [--repeat N] [--peers LIST] [--json FILE] [--list] [--again] [--report]
"""

import argparse
import fnmatch
import json
import os
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
sys.path.insert(0, str(FOLDER))

import claims  # noqa: E402
import libraries  # noqa: E402
import report  # noqa: E402
import suite  # noqa: E402
from figures import text_of  # noqa: E402
from judging import judge, show  # noqa: E402
from machine import busy_seconds, machine, measure_limits  # noqa: E402
from suite.row import LIBRARIES, ProcessRow  # noqa: E402

PEERS = [name for name in LIBRARIES if name != "capibara"] + ["torch.compile", "mlx.compile"]
ASKED_FOR = ["jax.plugin"]  # measured only if named by --peers
ANSWER_SECONDS = 420  # a worker that takes longer hangs
ROUND_SECONDS = 0.2  # each library's share of a round
SLOW_SECONDS = 5  # a library that has taken this long for a row and has two figures is not run again
MOST_RESIDENT = 3 << 20  # KiB: a worker that has used more is restarted
EXPECTED = {"jax": "0.10.2", "torch": "2.13.0"}


class Failed(Exception):
    """A failure of a worker; `missing` if its library is not installed."""

    def __init__(self, text, missing=False):
        super().__init__(text)
        self.missing = missing


class Process:
    """A worker and the pipe to it."""

    def __init__(self, library, threads, build, disk_cache=False):
        self.library = library
        environment = dict(os.environ, **libraries.environment_of(library, threads))
        environment["CAPIBARA_BUILD"] = str(build)
        environment["PYTHONPATH"] = os.pathsep.join([str(FOLDER), str(build / "python")])
        if not disk_cache:
            environment["CAPIBARA_CACHE"] = "off"
        processors = sorted(os.sched_getaffinity(0))[-threads:]  # the same cores for every library
        self.child = subprocess.Popen(
            [sys.executable, str(FOLDER / "worker.py"), library, str(threads)], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(log_folder() / f"worker-{library}.log", "a"),
            preexec_fn=lambda: os.sched_setaffinity(0, processors))

    def ask(self, **message):
        try:
            self.child.stdin.write(json.dumps(message) + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            raise Failed("its process has ended")
        if not select.select([self.child.stdout], [], [], ANSWER_SECONDS)[0]:
            self.stop()
            raise Failed(f"no answer in {ANSWER_SECONDS} s")
        line = self.child.stdout.readline()
        if not line:
            status = self.child.wait()
            raise Failed(f"its process ended with status {status}")
        answer = json.loads(line)
        if "error" in answer:
            with open(log_folder() / f"worker-{self.library}.log", "a") as log:
                log.write(f"{message}\n{answer.get('trace', '')}\n")
            raise Failed(answer["error"].splitlines()[0][:300], answer.get("missing", False))
        return answer

    def stop(self):
        self.child.kill()
        self.child.wait()


def log_folder():
    folder = ROOT / "build" / "bench" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = (ROOT / options.build).resolve()
        self.workers = {}
        self.missing = {}
        self.versions = {}
        self.scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=log_folder().parent))

    def worker(self, library, threads):
        key = (library, threads)
        if library in self.missing:
            raise Failed(self.missing[library], True)
        if key not in self.workers:
            process = Process(library, threads, self.build)
            try:
                hello = process.ask(do="hello")
            except Failed as problem:
                process.stop()
                self.missing[library] = str(problem)
                raise Failed(str(problem), True)
            self.versions[library] = hello["version"]
            expected = EXPECTED.get(library)
            if expected and hello["version"].split("+")[0] != expected:
                print(f"note: {library} is {hello['version']}, not {expected}")
            self.workers[key] = process
        return self.workers[key]

    def release(self, library, threads, stop=False):
        process = self.workers.get((library, threads))
        if not process:
            return
        try:
            stop = stop or process.ask(do="drop")["resident"] > MOST_RESIDENT
        except Failed:
            stop = True
        if stop:
            process.stop()
            del self.workers[library, threads]

    def close(self):
        for process in self.workers.values():
            process.stop()
        self.workers.clear()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def chosen_libraries(self, row):
        names = ["capibara"] + self.options.peers
        if isinstance(row, ProcessRow):
            return [name for name in names if name in row.libraries]
        return [name for name in names if row.maker(name)]

    # --- one row ------------------------------------------------------------------------------------------------------

    def processor_seconds(self):
        """Processor time of this process, its workers, and the workers that have ended."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        total = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
        for process in self.workers.values():
            try:
                fields = Path(f"/proc/{process.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has ended: the next call counts it
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return total

    def run(self, family, row):
        started, busy, ours = time.monotonic(), busy_seconds(), self.processor_seconds()
        record = self.run_row(family, row)
        capacity = (time.monotonic() - started) * len(os.sched_getaffinity(0))
        record["others"] = max(0.0, busy_seconds() - busy - (self.processor_seconds() - ours)) / max(capacity, 1e-9)
        return record

    def run_row(self, family, row):
        record = {"family": family, "name": row.name, "what": row.what, "threads": row.threads, "least": row.least,
                  "unit": "s", "value": {}, "median": {}, "first": {}, "error": {}, "failed": {}, "load": os.getloadavg()[0]}
        names = self.chosen_libraries(row)
        if isinstance(row, ProcessRow):
            self.run_processes(row, names, record)
        else:
            self.run_programs(row, names, record)
        return record

    def run_programs(self, row, names, record):
        truth = None
        if row.compared and self.options.check:
            try:
                process = self.worker("jax", row.threads)
                path = self.scratch / "truth.npz"
                process.ask(do="truth", row=row.name, path=str(path))
                truth = load_values(path)
            except Failed as problem:
                record["failed"]["truth"] = str(problem)
            self.release("jax", row.threads)
        plans, times, values = {}, {}, {}
        for name in names:
            path = self.scratch / f"{name}.npz" if row.compared and self.options.check else None
            try:
                plans[name] = self.worker(name, row.threads).ask(do="prepare", row=row.name, path=str(path) if path else "")
                times[name] = []
                record["first"][name] = plans[name]["first"]
                if plans[name]["memory"] is not None:
                    record.setdefault("memory", {})[name] = plans[name]["memory"]
                if path:
                    values[name] = load_values(path)
            except Failed as problem:
                self.note_failure(record, name, problem)
                self.release(name, row.threads, stop=True)
        for _ in range(self.options.repeat):
            for name in [name for name in names if name in plans]:
                one = plans[name]["seconds"] * plans[name]["calls"]
                if len(times[name]) >= 2 and sum(times[name]) * plans[name]["calls"] > SLOW_SECONDS:
                    continue
                try:
                    repetitions = max(1, min(50, round(ROUND_SECONDS / one)))
                    times[name] += self.worker(name, row.threads).ask(
                        do="run", repetitions=repetitions, calls=plans[name]["calls"])["times"]
                except Failed as problem:
                    self.note_failure(record, name, problem)
                    del plans[name], times[name]
        for name in names:
            self.release(name, row.threads)
        for name, seconds in times.items():
            record["value"][name] = min(seconds)
            record["median"][name] = statistics.median(seconds)
        record["repetitions"] = {name: len(seconds) for name, seconds in times.items()}
        if row.limit:
            record["limit"] = list(row.limit)
        self.compare(row, record, truth, values)

    def run_processes(self, row, names, record):
        record["unit"] = row.unit
        figures = {name: [] for name in names}
        for _ in range(min(row.repeat, self.options.repeat)):
            for name in list(figures):
                if name in self.missing:
                    self.note_failure(record, name, Failed(self.missing[name], True))
                    del figures[name]
                    continue
                process = Process(name, row.threads, self.build, row.disk_cache)
                try:
                    process.ask(do="hello")
                    figures[name].append(process.ask(do="measure", row=row.name)["value"])
                except Failed as problem:
                    self.note_failure(record, name, problem)
                    del figures[name]
                finally:
                    process.stop()
        for name, found in figures.items():
            record["value"][name] = min(found)
            record["median"][name] = statistics.median(found)

    def note_failure(self, record, name, problem):
        if problem.missing:
            self.missing.setdefault(name, str(problem))
        record["failed"][name] = str(problem)

    def compare(self, row, record, truth, values):
        """The error of each library against float64, and the difference of each peer from us."""
        values = {name: found for name, found in values.items() if name not in row.unlike}
        for name, found in values.items():
            if truth is not None:
                record["error"][name] = difference(found, truth, row.exact)
            elif name != "capibara" and "capibara" in values:
                record["error"][name] = difference(found, values["capibara"], row.exact)
        ours = record["error"].get("capibara")
        if ours is not None and not ours <= row.tolerance:
            record["failed"]["capibara"] = f"differs from float64 by {ours:.2e}, more than {row.tolerance:.0e}"
        for name, found in values.items():
            if name != "capibara" and "capibara" in values:
                apart = difference(found, values["capibara"], row.exact)
                if not apart <= 4 * row.tolerance + 2 * (record["error"].get(name) or 0):
                    record["failed"][name] = f"differs from ours by {apart:.2e}"


def load_values(path):
    with numpy.load(path) as held:
        return [held[f"arr_{number}"] for number in range(len(held.files))]


def difference(found, wanted, exact):
    """The largest difference over all outputs, each as a share of its largest value; infinite where shapes differ."""
    if len(found) != len(wanted):
        return float("inf")
    worst = 0.0
    for one, two in zip(found, wanted):
        if one.shape != two.shape:
            return float("inf")
        if one.size == 0:
            continue
        kind = numpy.complex128 if one.dtype.kind == "c" or two.dtype.kind == "c" else numpy.float64
        one, two = one.astype(kind), two.astype(kind)
        if exact:
            worst = max(worst, float(numpy.sum(one != two)))
            continue
        unlike = numpy.isfinite(one) != numpy.isfinite(two)
        if unlike.any():
            return float("inf")
        held = numpy.isfinite(one)
        if held.any():
            scale = max(float(numpy.max(numpy.abs(two[held]))), 1e-30)
            worst = max(worst, float(numpy.max(numpy.abs(one[held] - two[held]))) / scale)
    return worst


def chosen(rows, patterns):
    if not patterns:
        return rows
    found = [(family, row) for family, row in rows
             if any(pattern == family or pattern in row.name or fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]
    if not found:
        sys.exit(f"bench: no row or family '{', '.join(patterns)}'; ./run bench --list names them")
    return found


def main():
    parser = argparse.ArgumentParser(prog="./run bench", description="Times capibara beside its peers on this machine.")
    parser.add_argument("--only", default="", metavar="NAME,...", help="families, or rows whose name has NAME in it")
    parser.add_argument("--repeat", type=int, default=6, metavar="N", help="rounds (default 6)")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="LIST",
                        help="libraries to compare with (default: all but jax.plugin, jax on the plugin)")
    parser.add_argument("--json", metavar="FILE",
                        help="where the figures are written (default build/bench/results.json; with --only, only.json)")
    parser.add_argument("--build", default="build/release", metavar="FOLDER", help="the build that is measured")
    parser.add_argument("--no-check", dest="check", action="store_false", help="do not compare results")
    parser.add_argument("--list", action="store_true", help="print the rows")
    parser.add_argument("--again", action="store_true", help="measure those rows of the last run again during which other programs ran")
    parser.add_argument("--report", action="store_true", help="write docs/performance.md from the figures of the last run, if nothing else ran meanwhile")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    options.only = [name for name in options.only.split(",") if name]
    options.json = options.json or f"build/bench/{'only' if options.only else 'results'}.json"
    unknown = [name for name in options.peers if name not in PEERS + ASKED_FOR]
    if unknown:
        parser.error(f"no peer '{unknown[0]}'; there are: {', '.join(PEERS + ASKED_FOR)}")
    if options.repeat < 1:
        parser.error("--repeat needs a number above 0")
    if options.report:
        return report.write(ROOT / options.json) or claims.write()
    path = ROOT / options.json
    rows = chosen(suite.all_rows(), options.only)
    if options.list:
        for family, row in rows:
            print(f"{family:14} {row.name:34} {row.what}")
        return 0
    if options.again and not path.exists():
        parser.error(f"--again needs the figures of a run, and there is no {options.json}")
    last = json.loads(path.read_text()) if options.again else {"rows": [], "limits": {}, "versions": {}, "missing": {}}
    kept = {record["name"]: record for record in last["rows"] if not report.is_disturbed(record)}
    start = machine()
    limits = measure_limits((ROOT / options.build).resolve(), last["limits"])
    print("limits, 1 / 2 threads: " + "  ".join(
        f"{name} {' / '.join(f'{figure / 1e9:.0f}' for figure in found.values())} G/s" for name, found in limits.items()))
    results = {"machine": start, "limits": limits, "versions": last["versions"], "missing": last["missing"], "rows": []}
    bench = Bench(options)
    broken = False
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        for family, row in rows:
            if row.name in kept:
                results["rows"].append(kept[row.name])
                continue
            record = bench.run(family, row)
            judge(record, limits, results["rows"])
            show(record)
            broken |= bool(record["failed"])
            results["versions"].update(bench.versions)
            results["missing"].update(bench.missing)
            results["rows"].append(record)
            path.write_text(text_of(results))
    finally:
        bench.close()
    # Another program may have disturbed the first measurement: use the higher limits of start and end.
    results["limits"] = measure_limits((ROOT / options.build).resolve(), limits)
    for record in results["rows"]:
        judge(record, limits, results["rows"])
    path.write_text(text_of(results))
    for name, why in bench.missing.items():
        print(f"missing peer: {name} ({why})")
    below = [record["name"] for record in results["rows"] if record["missed"]]
    failed = [record["name"] for record in results["rows"] if record["failed"]]
    print(f"{len(results['rows'])} rows, {len(below)} below what was asked, {len(failed)} with failures; figures in {options.json}")
    return 1 if broken or bench.missing else 0


if __name__ == "__main__":
    sys.exit(main())
