"""Finds rows whose code has changed since they were measured, which their pages mark."""

import fnmatch
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_KERNELS = "src/backends/cpu/kernels/"
_MATMULS = [_KERNELS + "gemm/*"]
_COMPILER = [f"src/backends/cpu/{room}/*" for room in ("driver", "elements", "groups", "llvm", "loops", "regions", "rewrites")]


def _kernels(*names):
    return [f"{_KERNELS}{name}*" for name in names]


# The files behind the rows of a family; for families not listed, the whole backend.
SOURCES = {
    "contractions": _MATMULS,
    "einsum": ["src/library/numpy/*", "src/compiler/optimise/*"],
    "convolutions": _MATMULS + _kernels("convolution/", "planes/", "window/"),
    "fourier": _kernels("fft/"),
    "linear_algebra": _kernels("linalg/"),
    "special": ["src/lax/math/*", "src/backends/cpu/elements/*", *_kernels("random")],
    "attention": _MATMULS + _kernels("attention/"),
    "experts": _MATMULS + _kernels("experts/"),
    "quantization": _kernels("quantization/"),
    "spiking": _kernels("recurrence/spiking_neuron"),
    "recurrences": _kernels("recurrence/"),
    "fused_norms": _kernels("rows/", "streaming", "vector_exp"),
    "ordering": _kernels("sort/", "index/", "reduce/", "random", "transpose", "movement", "streaming"),
    "elementwise": _COMPILER, "control_flow": _COMPILER, "physics": _COMPILER,
    "sharding": ["src/compiler/partition/*", "src/core/sharding/*", "src/backends/cpu/*"],
    "dispatch": ["python/src/*", "src/backends/*", "src/transforms/*"],
    "processes": ["python/*", "src/*"],
}


def _git(*arguments):
    """The output of git; None in a copy without its history."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def commit():
    """The commit of this tree, or None without git."""
    return (_git("rev-parse", "--short=8", "HEAD") or "").strip() or None


def changed_families(since, families):
    """The members of `families` whose files differ between a commit and this tree's."""
    files = (_git("diff", "--name-only", since, "HEAD", "--", "src", "python") or "").split() if since else []
    return {family for family in families
            if any(fnmatch.fnmatch(file, pattern) for file in files for pattern in SOURCES.get(family, ["src/backends/cpu/*"]))}
