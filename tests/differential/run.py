"""Evaluates the calls in cases/ with jax and with capibara, compares them, and prints each call that differs.

    run.py [FAMILY or NAME ...]

A family is a file of cases/, a name a function (`numpy.sum`) or a part of the printed call. Results of jax are kept in
build/differential, keyed by the call and the version of jax; those of ./run test's share are also recorded in
tests/data for each kind of processor, since the last bits of jax's results differ between them (`--share 10 --record`).
CAPIBARA_PYTHON_PATH is the folder of the built module. The counts of passed and failed calls of each name are written to
build/differential/results/FAMILY.json.
"""

import argparse
import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import pickle
import platform
import signal
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tools" / "run"))
sys.path.append(str(ROOT / "tests" / "data"))

import compare  # noqa: E402
import evaluate  # noqa: E402
import makers  # noqa: E402
import patience  # noqa: E402
import recordings  # noqa: E402

KEPT = ROOT / "build" / "differential"
CASES = HERE / "cases"
CALL_SECONDS = 120  # processor time; an evaluation that takes more hangs


def module_path():
    """The folder of the built capibara package."""
    given = os.environ.get("CAPIBARA_PYTHON_PATH")
    if given:
        return Path(given)
    built = [ROOT / "build" / preset / "python" for preset in ("dev", "release")]
    found = [path for path in built if path.is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime) if found else built[0]


# --- one library -----------------------------------------------------------------------------------------------------


def environment(library):
    variables = dict(os.environ, JAX_PLATFORMS="cpu")
    if library == "jax":
        # Programs of a few operations that run once: optimise compile time rather than run time.
        variables["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    else:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(module_path()), os.environ.get("PYTHONPATH")]))
    return variables


def read_stream(out, outcomes):
    """Adds the entries of a stream to outcomes; returns (identity, mode) of an evaluation that did not end."""
    begun = None
    if not out.exists():
        return begun
    with open(out, "rb") as stream:
        while True:
            try:
                identity, mode, outcome = pickle.load(stream)
            except (EOFError, pickle.UnpicklingError):
                return begun
            begun = (identity, mode) if outcome is None else None
            if outcome is not None:
                outcomes.setdefault(identity, {})[mode] = outcome


def collect(library, path, work):
    """Outcomes of one library for the cases of a file; a process that dies is restarted after the fatal case."""
    outcomes = {}
    note = ""
    work = dict(work)
    with tempfile.TemporaryDirectory() as folder:
        out, work_file, log = Path(folder) / "out", Path(folder) / "work", Path(folder) / "log"
        while work:
            work_file.write_bytes(pickle.dumps(work))
            out.unlink(missing_ok=True)
            command = [sys.executable, "-X", "faulthandler", HERE / "evaluate.py", library, path, out, "--work", work_file]
            with open(log, "wb") as output:
                child = subprocess.Popen(list(map(str, command)), env=environment(library), stdin=subprocess.DEVNULL,
                                         stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
                status = wait(child, out)
            dead = read_stream(out, outcomes)
            text = log.read_text(errors="replace")
            if dead is None:
                if status != 0:
                    note = f"{library}: evaluate.py ended with status {status}\n" + "\n".join(text.splitlines()[-12:])
                break
            identity, mode = dead
            how = "took too long" if status is None else f"died ({signal.Signals(-status).name})" if status < 0 else f"exit status {status}"
            outcomes.setdefault(identity, {})[mode] = ("crash", how)
            order = list(work)
            left = order[order.index(identity):] if identity in order else []
            rest = {name: work[name] for name in left[1:]}
            modes = work[identity]
            if modes:  # the modes after the fatal one
                later = [other for other in modes if other != mode and other not in outcomes[identity]]
                if later:
                    rest = {identity: later} | rest
            work = rest
    return outcomes, note


def wait(child, out):
    """Waits as long as results arrive; None if they stop. An interruption also kills the child."""
    try:
        status, _ = patience.wait(child, CALL_SECONDS, lambda: out.stat().st_size if out.exists() else 0)
    except BaseException:
        child.kill()
        raise
    if status is None:
        child.kill()
        child.wait()
    return status


def jax_version():
    return metadata.version("jax")


def kept_file(path):
    """The file that keeps jax's results for a file of cases; any change of evaluate.py invalidates it."""
    rules = hashlib.sha256((HERE / "evaluate.py").read_bytes()).hexdigest()[:12]
    return KEPT / f"jax-{jax_version()}-{rules}" / f"{path.parent.name}-{path.stem}.pickle"


RECORDED = f"differential_{platform.machine()}"


@functools.cache
def recorded():
    """{name: bytes} of the kept files in tests/data; an archive for another evaluate.py has other names."""
    return recordings.members(RECORDED) if recordings.path(RECORDED).exists() else {}


def recorded_name(kept):
    return f"{RECORDED}/{kept.relative_to(KEPT)}"


def record():
    """Writes the kept results of jax for the present evaluate.py to tests/data."""
    folder = kept_file(CASES / "any.py").parent
    recordings.pack(recordings.path(RECORDED), {recorded_name(file): file.read_bytes() for file in folder.glob("*.pickle")})


CHECKOUT = "{checkout}"  # placeholder for the source tree in kept results: error messages name files


def with_folder(outcome, old, new):
    """An outcome with one folder replaced by another in its texts."""
    if isinstance(outcome, str):
        return outcome.replace(old, new)
    if isinstance(outcome, dict):
        return {with_folder(key, old, new): with_folder(value, old, new) for key, value in outcome.items()}
    if type(outcome) in (tuple, list):
        return type(outcome)(with_folder(value, old, new) for value in outcome)
    return outcome


def oracle(path, cases, fresh):
    """The outcomes of jax for the cases: kept ones, and the rest from jax itself."""
    kept = kept_file(path)
    outcomes = {}
    if not fresh:
        try:
            found = pickle.loads(kept.read_bytes() if kept.exists() else recorded()[recorded_name(kept)])
            outcomes = with_folder(found, CHECKOUT, str(ROOT))
        except Exception:
            outcomes = {}
    needed = wanted(cases, outcomes)
    note = ""
    if needed:
        found, note = collect("jax", path, needed)
        for identity, modes in found.items():
            outcomes.setdefault(identity, {}).update(modes)
        rest = wanted(cases, outcomes)  # first cases that do not work pass their modes to the next
        if rest and not note:
            found, note = collect("jax", path, rest)
            for identity, modes in found.items():
                outcomes.setdefault(identity, {}).update(modes)
        kept.parent.mkdir(parents=True, exist_ok=True)
        current = {case.identity for case in cases}
        partial = kept.with_suffix(f".{os.getpid()}")
        known = {identity: modes for identity, modes in outcomes.items() if identity in current}
        partial.write_bytes(pickle.dumps(with_folder(known, str(ROOT), CHECKOUT)))
        partial.replace(kept)
    return outcomes, note


def planned(cases, outcomes):
    """Each case with its modes, as far as jax's eager outcomes determine them."""
    worked = set()
    for case in cases:
        eager = outcomes.get(case.identity, {}).get("eager")
        if case.skip or eager is None:
            yield case, ["eager"]
            continue
        further = evaluate.modes_wanted(case, eager, case.name not in worked)
        if further:
            worked.add(case.name)
        yield case, ["eager"] + [mode for mode in further if mode != "grad" or has_gradient(case)]


def wanted(cases, outcomes):
    """The work still missing from the outcomes: identity -> modes, or None if they are yet to be determined."""
    work = {}
    for case, modes in planned(cases, outcomes):
        known = outcomes.get(case.identity, {})
        lacking = [mode for mode in modes if mode not in known]
        if lacking and not case.skip:
            work[case.identity] = None if "eager" in lacking else ["eager", *lacking]
    return work


def has_gradient(case):
    return evaluate.Evaluator.is_differentiable(None, case)


# --- comparison ------------------------------------------------------------------------------------------------------


class Tally:
    """Counts of a run: calls by module, comparisons by mode and by name, and failures."""

    def __init__(self):
        self.modules = collections.defaultdict(lambda: [0, 0, 0])
        self.modes = collections.defaultdict(lambda: [0, 0])
        self.names = collections.defaultdict(lambda: [0, 0])
        self.failures = []

    def add(self, case, problems):
        """Adds one call; `problems` has an entry for each compared mode, empty if the results agree."""
        self.failures += [(case, mode, problem) for mode, problem in problems.items() if problem]
        self.modules[case.module][1 if any(problems.values()) else 0] += 1
        for mode, problem in problems.items():
            self.modes[mode][1 if problem else 0] += 1
            for name in case.covers:
                self.names[name][1 if problem else 0] += 1

    def skip(self, case):
        self.modules[case.module][2] += 1


def typed_call(case, mode):
    if mode == "jit":
        return f"jax.jit: {case.text}"
    return case.text if mode == "eager" else f"jax.{mode} of {case.text}"


def share_of(cases, percent):
    """The first case of each name, and a share of the others that is the same in every run."""
    kept, counts = [], collections.Counter()
    for case in cases:
        counts[case.name] += 1
        number = int(hashlib.sha256(case.text.encode()).hexdigest()[:8], 16)
        if counts[case.name] == 1 or number % 100 < percent:
            kept.append(case)
    return kept


def compare_family(path, options):
    """Evaluates the chosen cases of a file with both libraries; returns the file's tally."""
    tally, notes = Tally(), []
    cases = makers.load(path)
    chosen = [case for case in cases if path.stem in options.families or any(part in case.text for part in options.parts)]
    if options.share < 100:
        cases = chosen = share_of(chosen, options.share)
    if not chosen:
        return tally, notes
    expected, note = oracle(path, cases, options.fresh)
    notes.append(note)
    asked = {case.identity for case in chosen if not case.skip}
    work = {}
    for case, modes in planned(cases, expected):
        if case.identity in asked and case.identity not in work:
            known = expected.setdefault(case.identity, {"eager": ("crash", "was not evaluated")})
            work[case.identity] = [mode for mode in modes if known.get(mode, ("none",))[0] != "none"]
    got, note = collect(options.against, path, work)
    notes.append(note)
    missing, seen = set(), set()
    for case in chosen:
        if case.skip:
            tally.skip(case)
            continue
        if case.identity in seen:
            continue
        seen.add(case.identity)
        problems = {}
        for mode in work.get(case.identity, ()):
            outcome = got.get(case.identity, {}).get(mode, ("crash", "was not evaluated"))
            if outcome[0] == "missing":
                if case.name in missing:
                    continue
                missing.add(case.name)
            problems[mode] = compare.difference(expected[case.identity][mode], outcome, case.tolerance, mode)
        if problems:
            tally.add(case, problems)
    return tally, [note for note in notes if note]


def write_results(family, tally):
    """Writes the counts of a family by name, [passed, failed], for the coverage report."""
    folder = KEPT / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{family}.json").write_text(json.dumps(dict(sorted(tally.names.items())), indent=1) + "\n")


def write_coverage():
    """Joins the counts of all families with the ledger of jax's names, for `capibara coverage --python`."""
    ledger = json.loads((ROOT / "python" / "capibara" / "jax" / "_ledger.json").read_text())
    counts = collections.defaultdict(lambda: [0, 0])
    for path in sorted((KEPT / "results").glob("*.json")):
        for name, (passed, failed) in json.loads(path.read_text()).items():
            counts[name][0] += passed
            counts[name][1] += failed
    with open(KEPT / "coverage.tsv", "w") as table:
        for module, names in ledger.items():
            for name, tier in names.items():
                full = f"{module}.{name}" if module != "jax" else name
                # A module among the names counts through the names in it.
                inside = [count for other, count in list(counts.items()) if other == full or other.startswith(full + ".")]
                passed, failed = (sum(count[part] for count in inside) for part in (0, 1))
                print(module, name, tier, passed, failed, sep="\t", file=table)


def families(names):
    """The case files for the names, and the names that are parts of calls."""
    files = sorted(CASES.rglob("*.py"))
    stems = {path.stem: path for path in files}
    chosen = [stems[name] for name in names if name in stems]
    parts = [name for name in names if name not in stems]
    return (files if parts or not names else chosen), parts


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--against", default="capibara", help="the library that is compared with jax")
    parser.add_argument("--jobs", type=int, default=1, help="families evaluated at a time")
    parser.add_argument("--share", type=int, default=100, help="percent of the calls to compare, beyond one of each name")
    parser.add_argument("--fresh", action="store_true", help="do not use the kept results of jax")
    parser.add_argument("--record", action="store_true", help="write the results of jax that are kept to tests/data")
    parser.add_argument("--limit", type=int, default=0, help="print at most this many failures of each family")
    parser.add_argument("--file", type=Path, action="append", default=[], help="a file of cases elsewhere")
    options = parser.parse_args(arguments)
    files, options.parts = families(options.names)
    files = options.file or files
    options.families = [] if options.parts else [path.stem for path in files]

    total = Tally()
    failed_notes = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        futures = {}
        for path in files:
            futures[pool.submit(compare_family, path, options)] = path
        for future in concurrent.futures.as_completed(futures):
            path = futures[future]
            try:
                tally, notes = future.result()
            except Exception as error:  # a file that does not load fails only itself
                tally, notes = Tally(), [f"{type(error).__name__}: {error}"]
            for number, (case, mode, problem) in enumerate(tally.failures):
                if options.limit and number >= options.limit:
                    print(f"   and {len(tally.failures) - number} more in {path.stem}")
                    break
                print(f"FAIL {typed_call(case, mode)}\n   {problem}", flush=True)
            for note in notes:
                failed_notes += 1
                print(f"FAIL {path.name}: {note}", flush=True)
            if path.stem in options.families and path.is_relative_to(CASES) and options.against == "capibara":
                write_results(path.stem, tally)
            for module, counts in tally.modules.items():
                total.modules[module] = [first + second for first, second in zip(total.modules[module], counts)]
            for mode, counts in tally.modes.items():
                total.modes[mode] = [first + second for first, second in zip(total.modes[mode], counts)]

    if options.against == "capibara" and not options.file:
        write_coverage()
    if options.record:
        record()
    print()
    for module in sorted(total.modules):
        passed, failed, skipped = total.modules[module]
        print(f"   {module:<28}{passed:6} passed{failed:6} failed{skipped:6} skipped")
    print("   comparisons: " + ", ".join(f"{mode} {passed} passed {failed} failed" for mode, (passed, failed) in sorted(total.modes.items())))
    passed, failed, skipped = (sum(counts[part] for counts in total.modules.values()) for part in range(3))
    print(f"{passed} passed, {failed + failed_notes} failed, {skipped} skipped")
    return 1 if failed or failed_notes else 0


if __name__ == "__main__":
    sys.exit(main())
