"""Builds capibara for an accelerator, runs its figures next to JAX's, and prints one table.

    python3 benchmarks/gpu/compare.py [--platform cuda] [--small] [--golden FOLDER] [--build FOLDER] [--package FOLDER] [--json FILE] [NAME...]

With --json the figures are kept for `./run bench --report`, which shows docs/performance/accelerator.json. Needs g++, CMake and a
Python with jax and its plugin; nvcc for our own kernels. Each figure runs in a fresh process, ours and JAX's one after the other. Ours is a
C++ program, JAX's is Python; if --package names a folder with the Python package capibara, JAX's own program runs on it too.
Figures are printed as they arrive, and a process that takes longer than --seconds is killed: the table has what it reached.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from processes import lines

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from figures import text_of  # noqa: E402

NAMES = ["first", "matmul", "dispatch", "long", "layer_norm", "attention", "selective_scan", "linear_algebra", "transfer", "gpt2"]
# True if less is better, by unit.
LESS = {"s", "ms", "us", "MB"}


def build(folder, jobs):
    configure = ["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DCAPIBARA_TESTS=OFF",
                 "-DCAPIBARA_LAPACK=OFF", "-DCAPIBARA_CPU=OFF", "-DCAPIBARA_PYTHON=OFF", "-DCAPIBARA_EXAMPLES=OFF",
                 "-DCAPIBARA_BENCHMARKS=ON"]
    subprocess.run(list(map(str, configure)), check=True, stdout=subprocess.DEVNULL)
    targets = ["benchmark_accelerator", "capibara_command"]
    listed = subprocess.run(["cmake", "--build", str(folder), "--target", "help"], capture_output=True, text=True).stdout
    if "capibara_cuda" in listed:
        targets.append("capibara_cuda")
    subprocess.run(["cmake", "--build", str(folder), f"-j{jobs}", "--target", *targets], check=True)


def figures(library, command, environment, seconds):
    """The figures of one library, printed as they arrive."""
    found = {}
    for line in lines(list(map(str, command)), environment, seconds):
        if line.startswith("{"):
            row = json.loads(line)
            found[row["name"]] = row["value"], row["unit"]
            print(f"   {library}: {row['name']} {row['value']:.5g} {row['unit']}", flush=True)
    return found


def machine(python):
    """A description of the machine and versions measured."""
    ask = "import jax; print(jax.devices()[0].device_kind, '| jax', jax.__version__)"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--build", default=str(ROOT / "build" / "gpu"))
    parser.add_argument("--golden", default=os.environ.get("CAPIBARA_GOLDEN", ""), help="a folder of .mlir files with expected values")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--seconds", type=float, default=600, help="what one library may take for one name")
    parser.add_argument("--json", help="also write the figures into this file")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with jax and its plugin")
    parser.add_argument("--package", help="a folder that holds the Python package capibara, as build/release/python")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    folder = Path(options.build)
    if not options.no_build:
        build(folder, options.jobs)
    # The plugin is in the packages of the interpreter that has jax.
    packages = subprocess.run([options.python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
                              capture_output=True, text=True, check=True).stdout.strip()
    environment = dict(os.environ, CAPIBARA_CACHE="off")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH", "")]))
    small = ["--small"] if options.small else []
    kept = {"machine": machine(options.python), "figures": []}
    print(f"{'figure':<34}{'ours, C++':>12}{'ours, Py':>12}{'JAX, Py':>12}  {'unit':<14}ratios of C++ and Python (above 1: capibara is ahead)", flush=True)
    show = lambda value: "-" if value is None else f"{value:.5g}"
    for name in [name for name in options.names if name != "golden"] or (NAMES if not options.names else []):
        ours = figures("C++", [folder / "benchmarks" / "accelerator", options.platform, *small, name], environment, options.seconds)
        peer = [ROOT / "benchmarks" / "gpu" / "jax_peer.py", *small, name]
        theirs = figures("jax", [options.python, *peer], dict(os.environ), options.seconds)
        twins = {}
        if options.package:
            paths = os.pathsep.join([options.package, environment["PYTHONPATH"]])
            twins = figures("Python", [options.python, "-m", "capibara", *peer],
                            dict(environment, PYTHONPATH=paths, JAX_PLATFORMS=options.platform), options.seconds)
        for figure in dict.fromkeys([*ours, *theirs]):
            found = [library.get(figure, (None, "")) for library in (ours, twins, theirs)]
            unit = next((unit for _, unit in found if unit), "")
            mine, twin, other = [value for value, _ in found]

            def ratio(value):
                if not value or not other or unit in ("nats", "of the largest"):
                    return None
                return other / value if unit in LESS else value / other
            kept["figures"].append({"name": figure, "capibara": mine, "capibara_python": twin, "jax": other, "unit": unit, "ratio": ratio(mine),
                                    "ratio_python": ratio(twin)})
            ratios = "  ".join("-" if value is None else f"{value:.3f}" for value in (ratio(mine), ratio(twin)))
            print(f"{figure:<34}{show(mine):>12}{show(twin):>12}{show(other):>12}  {unit:<14}{ratios}", flush=True)
    if options.golden and Path(options.golden).is_dir() and (not options.names or "golden" in options.names):
        done = subprocess.run([str(folder / "capibara"), "check", options.golden, "--backend", options.platform], capture_output=True,
                              text=True, env=environment)
        (folder / "golden.log").write_text(done.stdout + done.stderr)
        kept["golden"] = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-500:]
        print(f"golden files: {kept['golden']}  (see {folder / 'golden.log'})")
    if options.json:
        Path(options.json).write_text(text_of(kept))


if __name__ == "__main__":
    main()
