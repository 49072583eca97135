"""Compiles exported functions to object files, runs them from a C program, and compares with jax."""

import functools
import os
import pathlib
import platform
import shutil
import struct
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

COMMAND = os.environ.get("CAPIBARA_COMMAND", "build/capibara")
HARNESS = pathlib.Path(__file__).with_name("object_harness.c")

FOREIGN = {} if platform.machine() == "aarch64" else {
    "aarch64": ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"])}


def runs_here(target: str) -> bool:
    """True if code for a target can run on this machine, if only under an emulator."""
    if target in FOREIGN:
        compiler, emulator = FOREIGN[target]
        return bool(shutil.which(compiler) and shutil.which(emulator[0]))
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    needed = {"x86-64-v3,x86-64-v4": " avx2 ", "x86-64-v3": " avx2 ", "x86-64-v4": " avx512vl "}
    return target not in needed or needed[target] in flags.replace("\n", " ")


@functools.cache
def library_symbols(compiler: str) -> set[str]:
    """The symbols exported by this compiler's libc and libm."""
    found = set()
    for library in ("libc.so.6", "libm.so.6"):
        path = subprocess.run([compiler, f"-print-file-name={library}"], capture_output=True, text=True, check=True)
        listed = subprocess.run(["nm", "-D", "--defined-only", path.stdout.strip()], capture_output=True, text=True,
                                check=True)
        found |= {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines()}
    return found


def write_exported(folder, f, args) -> pathlib.Path:
    path = folder / "f.exported"
    path.write_bytes(export.export(jax.jit(f))(*args).serialize())
    return path


def compile_object(folder, path, target="native", name="f"):
    return subprocess.run(
        [COMMAND, "compile", str(path), "--object", str(folder / "f.o"), "--header", str(folder / "f.h"), "--target",
         target, "--name", name], capture_output=True, text=True)


def undefined(folder) -> set[str]:
    listed = subprocess.run(["nm", "-u", str(folder / "f.o")], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()} - {"_GLOBAL_OFFSET_TABLE_"}


def run_object(folder, leaves, results, target="native", options=()):
    compiler, emulator = FOREIGN.get(target, ("cc", []))
    program = folder / "program"
    subprocess.run(
        [compiler, "-std=c11", "-O1", "-Wall", "-Werror", "-pie", "-fPIE", *options, "-include", str(folder / "f.h"),
         "-DFUNCTION=f", "-DINPUTS=F_INPUTS", "-DOUTPUTS=F_OUTPUTS", "-DARENA_BYTES=F_ARENA_BYTES", str(HARNESS),
         str(folder / "f.o"), "-lm", "-o", str(program)], check=True)
    arrays = [np.asarray(leaf) for leaf in leaves]
    data = b"".join(struct.pack("<q", a.nbytes) + a.tobytes() for a in arrays)
    data += b"".join(struct.pack("<q", r.nbytes) for r in results)
    done = subprocess.run([*emulator, str(program)], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    values, at = [], 0
    for r in results:
        values.append(np.frombuffer(done.stdout[at:at + r.nbytes], r.dtype).reshape(r.shape))
        at += r.nbytes
    assert at == len(done.stdout)
    return values


def is_exact(dtype) -> bool:
    return not (jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.complexfloating))


def check(folder, f, *args, target="native", rtol=2e-5, atol=2e-5, options=()):
    compiled = compile_object(folder, write_exported(folder, f, args), target)
    assert compiled.returncode == 0, compiled.stderr
    compiler = FOREIGN.get(target, ("cc",))[0]
    assert undefined(folder) <= library_symbols(compiler)
    expected = [np.asarray(x) for x in jax.tree.leaves(jax.jit(f)(*args))]
    for got, want in zip(run_object(folder, jax.tree.leaves(args), expected, target, options), expected, strict=True):
        if is_exact(want.dtype):
            np.testing.assert_array_equal(got, want)
        else:
            wide = np.complex128 if jnp.issubdtype(want.dtype, jnp.complexfloating) else np.float64
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol)


def code_bytes(folder) -> int:
    """Bytes of instructions and their tables, without weights and sections that a linker drops."""
    listed = subprocess.run(["size", "-A", str(folder / "f.o")], capture_output=True, text=True, check=True)
    return sum(int(line.split()[1]) for line in listed.stdout.splitlines() if line.startswith("."))
