"""Runs JAX's own tests on jax with the plugin: ./run jaxtests GIT_DIR [FILES] --plugin [--x64] [--share 0/5].

jax and jaxlib are those of PyPI, unchanged; programs are compiled and run by the plugin. Tests that do not pass run again on
XLA:CPU: what fails there too does not count against the plugin. Results are build/jax_tests/plugin/FILE.jsonl and xla_cpu/FILE.jsonl.
"""
import argparse
import collections
import concurrent.futures
import sys
from pathlib import Path

from run import ROOT, WORK, File, jax_tests, sources

FILES = """lax_numpy_test lax_test lax_control_flow_test lax_autodiff_test api_test nn_test random_test linalg_test fft_test custom_api_test
    python_callback_test pjit_test shard_map_test array_test""".split()
BAD = ("failed", "error", "timeout", "crash")


class PluginFile(File):
    """One test file under jax itself: on the plugin, or those of its tests that are named on XLA:CPU."""

    def __init__(self, name, options, platform, tests=()):
        super().__init__(name, options)
        self.platform, self.tests = platform, tests
        self.results = WORK / platform / self.results.name
        self.results.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.results.with_suffix(".log")

    def path(self):
        return self.options.sources / "tests" / (self.name + ".py")

    def chosen(self):
        if not self.tests:
            return [self.path()]
        names = self.results.with_suffix(".txt")
        names.write_text("".join(f"{self.path()}::{test}\n" for test in self.tests))
        return [f"@{names}"]

    def environment(self):
        found = super().environment()
        found["JAX_PLATFORMS"] = "capibara,cpu" if self.platform == "plugin" else "cpu"
        if not self.tests:
            found["JAX_TESTS_SHARD"] = self.options.share
        return found

    def outcomes(self):
        return {test: out for (file, test), out in jax_tests.outcomes([self.results.parent]).items() if file == self.results.stem}


def row(name, options):
    """A line of the table: the outcomes of the file's tests on the plugin, and of the failed ones on XLA:CPU."""
    plugin = PluginFile(name, options, "plugin")
    plugin.run()
    found = plugin.outcomes()
    bad = [test for test, out in found.items() if out in BAD]
    theirs = {}
    if bad:
        xla = PluginFile(name, options, "xla_cpu", bad)
        xla.run()
        theirs = xla.outcomes()
    ours_alone = [test for test in bad if theirs.get(test) == "passed"]
    counted = collections.Counter(found.values())
    share = 100 * counted["passed"] / max(1, counted["passed"] + len(ours_alone))
    lost = counted["timeout"] + counted["crash"]
    cells = name, counted["passed"], counted["skipped"], len(bad), lost, len(bad) - len(ours_alone), f"{share:.1f}"
    return f"| {' | '.join(map(str, cells))} |", [f"{name}: {test}" for test in ours_alone]


def main(arguments):
    parser = argparse.ArgumentParser(prog="./run jaxtests", description=__doc__.splitlines()[0])
    parser.add_argument("git_directory")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--plugin", action="store_true", help="what chose this program")
    parser.add_argument("--x64", action="store_true", help="with 64-bit types, as JAX_ENABLE_X64=1")
    parser.add_argument("--share", default="0/1", metavar="K/N", help="every Nth test, from the Kth on")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--python", default=ROOT / "build" / "venv-jax-plugin" / "bin" / "python")
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python", help="the folder with the plugin's package")
    options = parser.parse_args(arguments)
    options.sources, options.results = sources(options.git_directory), WORK
    names = options.files or FILES
    for name in names:
        if not (options.sources / "tests" / (name + ".py")).exists():
            raise SystemExit(f"jaxtests: jax has no test file '{name}'; names are such as {FILES[0]}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda name: row(name, options), names))
    print("\n| file | passed | skipped | failed | of these hung or crashed | fail on XLA:CPU too | passed, % of XLA:CPU's |")
    print("|" + "---|" * 7)
    print("\n".join(line for line, _ in rows))
    alone = [test for _, tests in rows for test in tests]
    if alone:
        print("\nPass on XLA:CPU alone:\n" + "\n".join(alone))
    return 1 if alone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
