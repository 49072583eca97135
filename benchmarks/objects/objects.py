"""Objects in one table: bytes, the first call of a process, and the time of a call next to jit's on one thread.

usage: build/venv/bin/python benchmarks/objects/objects.py [NAME ...] [--build build/release] [--target TARGETS]

Needs the command line and the program benchmark_jit_time of that build. Programs of tests/backends/cpu/object_programs.py
(25 of the rows), of object_kernel_programs.py (15 that run LAPACK or a Fourier transform under jit) and three matmuls are exported
by jax, compiled to objects, linked only with libc and libm, and timed in fresh processes. jit is capibara's own, in a process of
one thread, timed in C++, without Python between the calls.
"""
import argparse
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "backends" / "cpu"))

import jax  # noqa: E402
import numpy as np  # noqa: E402
from object_checks import compile_object, library_symbols, undefined, write_exported  # noqa: E402
from object_kernel_programs import KERNEL_CASES, KERNELS  # noqa: E402
from object_programs import CASES, PLAIN  # noqa: E402


def matmul(m, k, n):
    random = np.random.default_rng(0)
    return lambda a, b: a @ b, random.normal(size=(m, k)).astype(np.float32), random.normal(size=(k, n)).astype(np.float32)


LARGE = {"matmul_512": matmul(512, 512, 512), "matmul_1024": matmul(1024, 1024, 1024), "matmul_64_784_512": matmul(64, 784, 512)}


def sections(path):
    listed = subprocess.run(["size", "-A", str(path)], capture_output=True, text=True, check=True).stdout
    return {parts[0]: int(parts[1]) for line in listed.splitlines() if len(parts := line.split()) == 3 and parts[0].startswith(".")}


def measured(name, f, args, build, target):
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        exported = write_exported(folder, f, args)
        compiled = compile_object(folder, exported, target)
        if compiled.returncode != 0:
            raise SystemExit(f"{name}: {compiled.stderr}")
        others = undefined(folder) - library_symbols("cc")
        program = folder / "program"
        subprocess.run(["cc", "-O1", "-include", str(folder / "f.h"), "-DFUNCTION=f", "-DINPUTS=F_INPUTS", "-DOUTPUTS=F_OUTPUTS",
                        "-DARENA_BYTES=F_ARENA_BYTES", str(ROOT / "benchmarks" / "objects" / "object_time.c"), str(folder / "f.o"), "-lm",
                        "-o", str(program)], check=True)
        kept = jax.export.deserialize(bytearray(exported.read_bytes())).module_kept_var_idx
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(args)]
        data = b"".join(struct.pack("<q", leaves[i].nbytes) + leaves[i].tobytes() for i in kept)
        results = [np.asarray(x) for x in jax.tree.leaves(jax.jit(f)(*args))]
        sizes = b"".join(struct.pack("<q", r.nbytes) for r in results)
        times = [subprocess.run([str(program)], input=data + sizes, capture_output=True, check=True).stdout.split() for _ in range(5)]
        first, steady = min(float(t[0]) for t in times), min(float(t[1]) for t in times)
        one_thread = {**os.environ, "CAPIBARA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        jit = min(float(subprocess.run([str(build / "benchmarks" / "jit_time"), str(exported)], input=data, capture_output=True, check=True,
                                       env=one_thread).stdout) for _ in range(3))
        bytes_of = sections(folder / "f.o")
        code = sum(size for section, size in bytes_of.items() if section.startswith(".text"))
        return code, (folder / "f.o").stat().st_size, others, first, steady, jit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--target", default="native")
    chosen = parser.parse_args()
    print("| program | code, bytes | object, bytes | first call, us | a call, us | jit, us | object / jit |")
    print("|---|---|---|---|---|---|---|")
    programs = {**CASES, **KERNEL_CASES, **LARGE}
    for name in chosen.names or [*PLAIN, *KERNELS, *LARGE]:
        f, *args = programs[name]
        code, size, others, first, steady, jit = measured(name, f, args, chosen.build, chosen.target)
        if others:
            raise SystemExit(f"{name}: the object needs {', '.join(sorted(others))}")
        print(f"| {name} | {code} | {size} | {first / 1e3:.1f} | {steady / 1e3:.2f} | {jit / 1e3:.2f} | {steady / jit:.2f} |", flush=True)


if __name__ == "__main__":
    main()
