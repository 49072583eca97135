"""Runs JAX's own tests on capibara: ./run jaxtests GIT_DIR [FILES], where GIT_DIR is a git directory of jax-ml/jax with its tags.

Tests and their support are read from the tag jax-v0.10.2 into build/jax_tests, never into this repository. FILES are names such as
nn_test; without any, all files of the groups of tools/check/jax_tests.py run. Results are build/jax_tests/results/FILE.jsonl (results.x64
with --x64); tools/check/jax_tests.py counts them, and reports tests of its list that do not belong there.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "jax_tests"
TAG = "jax-v0.10.2"
sys.path.append(str(ROOT / "tools" / "check"))
import jax_tests  # noqa: E402

TEST_SECONDS = 120  # limit for one test
IDLE_SECONDS = 20  # without using the processor: a deadlock
IMPORT_SECONDS = 600
RESTARTS = 60  # after crashes and hangs, which end a process
TICK = 0.2


def sources(git_directory):
    """The folder with the sources of the tag, read once."""
    folder = WORK / "sources"
    if not (folder / "tests").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = subprocess.Popen(["git", "--git-dir", git_directory, "archive", TAG, "jax", "tests"], stdout=subprocess.PIPE)
        subprocess.run(["tar", "x", "-C", folder], stdin=archive.stdout, check=False)
        archive.wait()
        if not (folder / "tests").is_dir() or not (folder / "jax" / "version.py").exists():
            shutil.rmtree(folder)
            raise SystemExit(f"jaxtests: {git_directory} is no git directory of jax-ml/jax with the tag {TAG}")
    return folder


def processor_seconds(process):
    """The processor time of a process, or None if it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class File:
    """One test file, in as many processes as it takes."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.results = options.results / (name.replace("/", "_") + ".jsonl")
        self.log = self.results.with_suffix(".log")

    def run(self):
        self.results.unlink(missing_ok=True)
        self.log.unlink(missing_ok=True)
        for _ in range(RESTARTS):
            if self._process():
                break
        outcomes = collections.Counter(out for (file, _), out in jax_tests.outcomes([self.results.parent]).items()
                                       if file == self.results.stem)
        told = ", ".join(f"{count} {outcome or 'not run'}" for outcome, count in outcomes.most_common())
        print(f"{self.name}: {told or 'nothing, see ' + str(self.log)}", flush=True)

    def path(self):
        """The file that pytest runs, which runs the test file's statements one by one."""
        wrapper = self.options.results / "wrappers" / (self.name.replace("/", "_") + ".py")
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        path = self.options.sources / "tests" / (self.name + ".py")
        wrapper.write_text(f"import statements\nstatements.run({str(path)!r}, globals())\n")
        return wrapper

    def chosen(self):
        """The arguments that select tests for pytest."""
        return [self.path()]

    def environment(self):
        return dict(os.environ, PYTHONPATH=os.pathsep.join([str(self.options.package), str(HERE)]),
                    JAX_TESTS_SOURCES=str(self.options.sources), JAX_TESTS_OUT=str(self.results), JAX_ENABLE_X64=str(int(self.options.x64)),
                    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONFAULTHANDLER="1")

    def _process(self):
        """Runs the tests that have no result yet; True if all have one now, or none can be run."""
        folder = self.path().parent
        command = [self.options.python, "-m", "pytest", "-q", "--tb=no", "--noconftest", "--import-mode=importlib", "-c", os.devnull,
                   "--rootdir", folder, "-p", "no:cacheprovider", "-p", "record", f"--timeout={TEST_SECONDS}",
                   "--timeout-method=signal", *self.chosen()]
        with open(self.log, "ab") as log:
            process = subprocess.Popen(command, cwd=folder, env=self.environment(), stdout=log, stderr=log, start_new_session=True)
            why = self._watch(process)
        lines = [json.loads(line) for line in self.results.read_text().splitlines()] if self.results.exists() else []
        if lines and lines[-1]["k"] == "finish":
            return True
        started = lines[-1]["id"] if lines and lines[-1]["k"] == "start" else None
        if started is None:  # it ended outside any test
            return True
        with open(self.results, "a") as results:
            results.write(json.dumps({"k": "lost", "id": started, "out": "timeout" if why else "crash", "err": {"msg": why or
                                      f"exit status {process.returncode}"}}) + "\n")
        return False

    def _watch(self, process):
        """Waits for a process; returns the reason if it was killed, or None."""
        size, spent, since = -1, 0.0, time.time()
        written = since
        while process.poll() is None:
            time.sleep(TICK)
            now = time.time()
            new_size, new_spent = self.results.stat().st_size if self.results.exists() else 0, processor_seconds(process) or spent
            if new_size != size or new_spent - spent > TICK:
                if new_size != size:
                    written = now
                size, spent, since = new_size, new_spent, now
            limit = TEST_SECONDS + IDLE_SECONDS if size else IMPORT_SECONDS
            why = "deadlock" if size and now - since > IDLE_SECONDS else "timeout" if now - written > limit else None
            if why:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return why
        return None


def main(arguments):
    parser = argparse.ArgumentParser(prog="./run jaxtests", description=__doc__.splitlines()[0])
    parser.add_argument("git_directory")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--x64", action="store_true", help="with 64-bit types, as JAX_ENABLE_X64=1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--python", default=ROOT / "build" / "venv-jaxtests" / "bin" / "python")
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python", help="the folder that has the package")
    options = parser.parse_args(arguments)
    options.sources = sources(options.git_directory)
    known = [file for files in jax_tests.GROUPS.values() for file in files]
    names = options.files or known
    for name in names:
        if not (options.sources / "tests" / (name + ".py")).exists():
            raise SystemExit(f"jaxtests: jax has no test file '{name}'; names are such as {known[0]}")
    options.results = WORK / ("results.x64" if options.x64 else "results")
    options.results.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda name: File(name, options).run(), names))
    files = {name.replace("/", "_") for name in names}
    found = {key: out for key, out in jax_tests.outcomes([options.results]).items() if key[0] in files}
    lines, wrong = jax_tests.table(found, jax_tests.left_out(), whole=not options.files)
    print("\n".join(lines + wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
