"""Runs the test suites of a built tree and ends with one line, `N passed, M failed, K skipped`, summed over all."""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import patience
from checks import golden_suites, run_check
from counts import SHARE, SUMMARY, Counts, Suite, ending, tail

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "results"
SUITE_SECONDS = 3600  # processor time without any output; a suite that takes more hangs
TEST_SECONDS = 1200  # the same for one Python test: pytest prints a dot after each


class Spent(threading.local):
    """The processor time that the suite of this thread has used."""

    seconds = 0.0


class Runner:
    """Starts the programs of the suites with one environment, each logging to a file of its own."""

    def __init__(self, options):
        self.build = (ROOT / options.build).resolve()
        self.quick = options.quick
        self.pattern = ""
        self.sample = False  # run a share of the long suites instead of all their calls
        self.jobs = options.jobs
        self.children = set()
        self.spent = Spent()
        self.environment = dict(
            os.environ,
            CAPIBARA_BUILD=str(self.build),
            CAPIBARA_COMMAND=str(self.build / "capibara"),
            CAPIBARA_PYTHON_PATH=str(self.build / "python"),
            JAX_PLATFORMS="cpu",
            PYTHONPATH=os.pathsep.join(filter(None, [str(self.build / "python"), os.environ.get("PYTHONPATH")])),
        )
        if self.quick:
            self.environment["CAPIBARA_QUICK"] = "1"
        if options.full:
            self.environment["CAPIBARA_EVERY_CALL"] = "1"
        self.environment.setdefault("CAPIBARA_PROPERTY_SHARE", str(property_share()))
        self.golden = Path(options.golden).resolve() if options.golden else None
        for name in ("CAPIBARA_GOLDEN", "CAPIBARA_GOLDEN_MODELS"):  # ./run test reads nothing outside the repository
            self.environment.pop(name, None)
        plugin = plugin_file()
        if options.emulator:
            # A plugin is native code for this machine.
            self.environment.pop("CAPIBARA_PLUGIN", None)
            self.environment["OPENBLAS_NUM_THREADS"] = "1"  # its threads spin while they wait, which is slow under emulation
        elif plugin:
            self.environment.setdefault("CAPIBARA_PLUGIN", str(plugin))
        if options.sanitizer == "tsan":
            self.environment.setdefault("TSAN_OPTIONS", "ignore_noninstrumented_modules=1 halt_on_error=0")
            self.environment["OPENBLAS_NUM_THREADS"] = "1"
        if options.sanitizer == "asan-ubsan":
            self.environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        if options.sanitizer:
            # The sanitizers call dlopen for us, so the rpath of the program is not searched.
            own = [str(self.build / "lib"), os.environ.get("LD_LIBRARY_PATH")]
            self.environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, own))
        # Some Linux kernels map memory where the thread sanitizer of g++ 12 does not expect it.
        self.prefix = ["setarch", "-R"] if options.sanitizer and shutil.which("setarch") else []
        self.prefix += options.emulator.split()
        self.slowness = 10 if options.emulator else 1

    def start(self, label, command, folder=ROOT, seconds=SUITE_SECONDS):
        """Runs a command to completion; returns its status (None: took too long) and its log file."""
        log = RESULTS / (re.sub(r"[^A-Za-z0-9_.]+", "-", label) + ".log")
        with open(log, "wb") as output:
            child = subprocess.Popen(
                self.prefix + [str(part) for part in command], cwd=folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            self.children.add(child)
            try:
                status, used = patience.wait(child, seconds * self.slowness, lambda: log.stat().st_size)
                self.spent.seconds += used
                if status is None:
                    patience.stop(child, patience.WRITE_SECONDS)
                return status, log
            finally:
                self.children.discard(child)

    def stop_all(self):
        for child in list(self.children):
            patience.stop(child)


def property_share():
    """The sixth of the calls that tests/properties compiles: it changes with each commit."""
    done = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True) if shutil.which("git") else None
    return int(done.stdout) % 6 if done and done.returncode == 0 else 0


def plugin_file():
    """XLA for the host's processor as a PJRT plugin, if the test environment has it."""
    found = sorted((ROOT / "build" / "venv").glob("lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"))
    return found[0] if found else None


# --- one function per kind of suite ----------------------------------------------------------------------------------


def run_googletest(runner, room):
    counts = Counts()
    program = runner.build / "tests" / f"{room}_tests"
    if not program.exists():
        counts.fail(room, "its test program was not built")
        return counts
    report = RESULTS / f"cpp-{room}.json"
    report.unlink(missing_ok=True)
    chosen = f"*{runner.pattern}*" if runner.pattern else "*"
    chosen += "-Golden.*"  # recorded cases of other projects: ./run golden
    chosen += ":*Slow*" if runner.quick else ":*AMillion*" if runner.sample else ""
    status, log = runner.start(f"cpp-{room}", [program, f"--gtest_output=json:{report}", f"--gtest_filter={chosen}"])
    if not report.exists():  # it crashed: count what the log shows
        text = log.read_text(errors="replace")
        counts.passed = text.count("[       OK ]")
        counts.skipped = text.count("[  SKIPPED ]")
        started = re.findall(r"\[ RUN      \] (\S+)", text)
        counts.fail(started[-1] if started else room, f"{ending(status)}\n{tail(log)}")
        return counts
    for group in json.loads(report.read_text())["testsuites"]:
        for test in group["testsuite"]:
            name = f"{group['name']}.{test['name']}"
            if test.get("failures"):
                counts.fail(name, test["failures"][0]["failure"])
            elif test.get("result") == "SKIPPED":
                counts.skipped += 1
            elif test.get("status") == "RUN":
                counts.passed += 1
    if status != 0 and not counts.failed:
        counts.fail(room, f"{ending(status)} after all tests passed\n{tail(log)}")
    return counts


def read_junit(report, counts):
    for case in xml.parse(report).getroot().iter("testcase"):
        name = "::".join(filter(None, [case.get("classname"), case.get("name")]))
        problem = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        if problem is not None:
            said = "\n".join((case.findtext("system-out") or "").splitlines()[-12:])
            counts.fail(name, problem.get("message") or problem.text or said)
        elif case.find("skipped") is not None:
            counts.skipped += 1
        else:
            counts.passed += 1


def run_pytest(runner, folder):
    counts = Counts()
    label = "python-" + "-".join(folder.relative_to(ROOT).parts)
    report = RESULTS / f"{label}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-ra", f"--junitxml={report}", folder]
    if runner.quick or runner.sample:  # `remake`: files that change only with a new jax
        command += ["-m", "not slow" if runner.quick else "not long and not remake"]
    if runner.pattern:
        command += ["-k", runner.pattern]
    status, log = runner.start(label, command, seconds=TEST_SECONDS)
    if report.exists():
        read_junit(report, counts)
    if status not in (0, 1, 5) or (status == 1 and not counts.failed):
        counts.fail(folder.name, f"pytest: {ending(status)}\n{tail(log, 60 if status is None else 12)}")
    return counts


def run_examples(runner):
    counts = Counts()
    for source in sorted((ROOT / "examples").glob("*.cpp")):
        if runner.pattern and runner.pattern not in source.stem:
            continue
        program = runner.build / "examples" / source.stem
        if not program.exists():
            counts.fail(source.stem, "was not built")
            continue
        status, log = runner.start(f"example-{source.stem}", [program])
        if status == 0:
            counts.passed += 1
        else:
            counts.fail(source.stem, f"{ending(status)}\n{tail(log)}")
    return counts


def run_differential(runner):
    """Every call in tests/differential/cases, with jax and with capibara."""
    counts = Counts()
    command = [sys.executable, ROOT / "tests" / "differential" / "run.py", "--jobs", runner.jobs]
    if runner.sample:
        command += ["--share", 10]  # all calls take jax a quarter of an hour
    status, log = runner.start("differential", command + ([runner.pattern] if runner.pattern else []))
    lines = log.read_text(errors="replace").splitlines()
    summary = SUMMARY.match(lines[-1]) if lines else None
    if not summary:
        counts.fail("differential", f"{ending(status)}, without its closing line\n{tail(log)}")
        return counts
    counts.passed, counts.failed, counts.skipped = map(int, summary.groups())
    for number, line in enumerate(lines):
        if line.startswith("FAIL "):
            counts.failures.append((line.removeprefix("FAIL "), lines[number + 1] if number + 1 < len(lines) else ""))
    return counts


def run_cmake_project(runner):
    """An external project built against an installed copy, static (from the release build) and shared."""
    counts = Counts()
    for flavour, build in (("static", runner.build), ("shared", ROOT / "build" / "shared")):
        prefix = ROOT / "build" / "installed" / flavour
        project = ROOT / "build" / "installed" / f"project-{flavour}"
        for folder in (prefix, project):
            shutil.rmtree(folder, ignore_errors=True)
        steps = [
            ["cmake", "--install", build, "--prefix", prefix],
            ["cmake", "-S", ROOT / "examples" / "cmake_project", "-B", project, f"-DCMAKE_PREFIX_PATH={prefix}",
             "-DCMAKE_BUILD_TYPE=Release"],
            ["cmake", "--build", project],
            [project / "fit_line"],
            [project / "decay"],
        ]
        for number, step in enumerate(steps):
            status, log = runner.start(f"cmake_project-{flavour}-{number}", step)
            if status != 0:
                counts.fail(f"{flavour} copy", f"{' '.join(map(str, step[:3]))}: {ending(status)}\n{tail(log)}")
                break
        else:
            counts.passed += 1
    return counts


def run_minimal(runner):
    counts = Counts()
    build = ROOT / "build" / "minimal"
    report = RESULTS / "minimal.xml"
    report.unlink(missing_ok=True)
    status, log = runner.start("minimal", ["ctest", "--output-junit", report, "--output-on-failure"], build)
    if report.exists():
        read_junit(report, counts)
    elif status != 0:
        counts.fail("minimal", f"{ending(status)}\n{tail(log)}")
    return counts


# --- the list of suites ----------------------------------------------------------------------------------------------


def room_of(path):
    """The suite of a C++ test: the second folder below tests, or the only one, matching the program names in tests/CMakeLists.txt."""
    return path.parts[1] if len(path.parts) > 2 else path.parts[0]


def all_suites():
    tests = ROOT / "tests"
    suites = [Suite("differential", "jax", run_differential, quick=False)]
    for room in sorted({room_of(path.relative_to(tests)) for path in tests.rglob("*_test.cpp")}):
        suites.append(Suite(room, "c++", lambda runner, room=room: run_googletest(runner, room), f"{room}_tests"))
    folders = {path.parent for pattern in ("*/test_*.py", "*/*/test_*.py") for path in tests.glob(pattern)}
    folders |= {path.parent for path in (ROOT / "python" / "tests").glob("*/test_*.py")}
    for folder in sorted(folders):
        name = f"python/{folder.name}" if folder.relative_to(ROOT).parts[0] == "python" else folder.name
        suites.append(Suite(name, "python", lambda runner, folder=folder: run_pytest(runner, folder)))
    examples = sorted((ROOT / "examples").glob("*.cpp"))
    suites.append(Suite("examples", "", run_examples, " ".join(f"example_{source.stem}" for source in examples) or "all"))
    suites.append(Suite("check", "", run_check, "capibara_command"))
    suites.append(Suite("cmake_project", "", run_cmake_project, "all", "shared", quick=False))
    suites.append(Suite("minimal", "", run_minimal, "", "minimal", quick=False))
    return sorted(suites, key=lambda suite: suite.family not in ("python", "processes", "properties", "stablehlo"))  # long ones first


def choose(names):
    """The suites with these names, or those below a name; any other name is a part of test names, and is returned as the pattern."""
    suites = all_suites()
    if not names:
        return suites, ""
    chosen = [suite for suite in suites if {suite.name, suite.family} & set(names)]
    unknown = [name for name in names if name not in {known for suite in suites for known in (suite.name, suite.family)}]
    if len(unknown) > 1 or (unknown and chosen):
        sys.exit(f"run: no suite '{unknown[0]}'; suites are: {' '.join(dict.fromkeys(s.name for s in suites))}")
    if unknown:
        return [suite for suite in suites if suite.kind or suite.name == "examples"], unknown[0]
    return chosen, ""


def may_sanitize(suite):
    """True if a suite runs only C++ programs: the Python interpreter is not built with the sanitizers."""
    return suite.kind == "c++" or (suite.name == "examples" and not suite.kind)


def report(suite, counts, seconds, processor):
    parts = [f"{counts.passed} passed"]
    if counts.failed:
        parts.append(f"{counts.failed} failed")
    if counts.skipped:
        parts.append(f"{counts.skipped} skipped")
    took = f"{seconds:7.1f} s  {processor:7.1f} s of processor"
    print(f"   {suite.label:<24}{', '.join(parts):<34}{took}  {counts.note}".rstrip(), flush=True)
    for name, why in counts.failures[:20]:
        print(f"      FAILED {name}")
        for line in why.splitlines()[:14]:
            print(f"         {line}")
    if len(counts.failures) > 20:
        print(f"      and {len(counts.failures) - 20} more, see build/results", flush=True)


def run_suites(suites, runner, names):
    total = Counts()

    def run_one(suite):
        started = time.monotonic()
        runner.spent.seconds = 0
        try:
            counts = suite.run(runner)
        except Exception as error:  # a broken report fails its own suite, not the others
            counts = Counts()
            counts.fail(suite.label, f"{type(error).__name__}: {error}")
        # Filters may leave a suite empty; otherwise a suite without tests hides a mistake.
        if not (counts.passed or counts.failed or counts.skipped) and not runner.pattern and not runner.quick:
            counts.fail(suite.label, "ran no test")
        return suite, counts, time.monotonic() - started, runner.spent.seconds

    with concurrent.futures.ThreadPoolExecutor(max_workers=runner.jobs + 1) as pool:  # one more: "processes" mostly waits
        futures = [pool.submit(run_one, suite) for suite in suites]
        try:
            for future in concurrent.futures.as_completed(futures):
                suite, counts, seconds, processor = future.result()
                if runner.pattern and not (counts.passed or counts.failed or counts.skipped):
                    continue
                report(suite, counts, seconds, processor)
                total.passed += counts.passed
                total.failed += counts.failed
                total.skipped += counts.skipped
        except KeyboardInterrupt:
            for future in futures:
                future.cancel()
            runner.stop_all()
            raise
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true", help="every call of the suites that are otherwise sampled")
    parser.add_argument("--sanitizer", default="")
    parser.add_argument("--emulator", default="", help="the command that runs programs of another architecture")
    parser.add_argument("--golden", default="", help="a folder of recorded cases of other projects, which are run instead")
    parser.add_argument("--failed-build", action="append", default=[])
    parser.add_argument("--started-ago", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="print the names of the suites")
    parser.add_argument("--targets", action="store_true", help="print what must be built for the names")
    parser.add_argument("--presets", action="store_true", help="print the further presets that the names need")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    suites, pattern = (golden_suites(options.golden), "") if options.golden else choose(options.names)
    if options.emulator:
        suites = [suite for suite in suites if suite.kind == "c++"]
    if options.list:
        print("\n".join(dict.fromkeys(suite.name for suite in suites)))
        return 0
    if options.targets:
        targets = {target for suite in suites for target in suite.target.split()}
        print("\n".join(["all"] if "all" in targets else sorted(targets)))
        return 0
    if options.presets:
        print("\n".join(dict.fromkeys(suite.preset for suite in suites if suite.preset)))
        return 0

    if options.quick:
        suites = [suite for suite in suites if suite.quick]
    if options.sanitizer:
        suites = [suite for suite in suites if may_sanitize(suite)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    runner = Runner(options)
    runner.sample = not options.names and not options.full and not options.golden
    if runner.sample:
        runner.environment["CAPIBARA_SHARE"] = str(SHARE)  # of wide tests, see python/tests/conftest.py and tests/oracle/judge.py
    runner.pattern = pattern
    started = time.monotonic() - options.started_ago
    shared = "" if options.full else f"; properties compile share {runner.environment['CAPIBARA_PROPERTY_SHARE']} of 0 to 5 of their calls"
    print(f"== running {len(suites)} suites, logs in build/results{shared if any(s.name == 'properties' for s in suites) else ''}", flush=True)
    total = run_suites(suites, runner, options.names)
    for preset in options.failed_build:
        total.failed += 1
        print(f"   FAILED build of {preset}, see build/logs/build-{preset}.log")
    if not (total.passed or total.failed or total.skipped):
        print(f"   no test has '{pattern}' in its name")
        total.failed = 1
    minutes, seconds = divmod(int(time.monotonic() - started), 60)
    print(f"== {minutes}m{seconds:02d}s")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    try:
        status = main()
    except KeyboardInterrupt:
        status = 130  # ./run prints that it was stopped
    sys.exit(status)
