"""Which rows' code has changed since they were measured: their pages mark them."""

import fnmatch
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_KERNELS = "src/backends/cpu/kernels/"
_MATMULS = [_KERNELS + f"products/{name}*" for name in ("gemm", "gemv", "dot_general", "amx_", "round_brains", "mixed_bytes", "product.h",
                                                        "tile_heights", "transpose_avx512")]
_COMPILER = [f"src/backends/cpu/{room}/*" for room in ("driver", "elements", "groups", "llvm", "loops", "regions", "rewrites")]


def _kernels(*names):
    return [f"{_KERNELS}{name}*" for name in names]


# The files behind the rows of a family; those of a family that is not here are the whole backend's.
SOURCES = {
    "contractions": _MATMULS,
    "einsum": ["src/library/numpy/*", "src/optimise/*"],
    "convolutions": _MATMULS + _kernels("products/convolution", "products/depthwise", "planes/", "pooling", "window", "select_and_scatter"),
    "fourier": _kernels("products/fft"),
    "linear_algebra": _kernels("products/small_"),
    "special": ["src/lax/math/*", "src/backends/cpu/elements/*", *_kernels("random")],
    "attention": _MATMULS + _kernels("attention/", "flash_attention", "sparse_attention"),
    "experts": _MATMULS + _kernels("moe_", "grouped_matmul"),
    "quantization": _kernels("vq_"),
    "spiking": _kernels("spiking_neuron"),
    "recurrences": _kernels("ssd", "selective_scan", "linear_recurrence", "recurrence"),
    "fused_norms": _kernels("layer_norm", "softmax", "gelu_dropout", "row_lanes", "streaming", "vector_exp"),
    "ordering": _kernels("order", "radix", "vector_sort", "top_k", "scatter", "cumulative", "index", "random", "reductions", "transpose",
                         "movement", "streaming"),
    "elementwise": _COMPILER, "control_flow": _COMPILER, "physics": _COMPILER,
    "sharding": ["src/partition/*", "src/sharding/*", "src/backends/cpu/*"],
    "dispatch": ["python/src/*", "src/backends/*", "src/transforms/*"],
    "processes": ["python/*", "src/*"],
}


def _git(*arguments):
    """What git prints; None in a copy without its history."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def commit():
    """The commit of this tree, or none where git does not say."""
    return (_git("rev-parse", "--short=8", "HEAD") or "").strip() or None


def changed_families(since, families):
    """Those of `families` whose files differ between a commit and this tree's."""
    files = (_git("diff", "--name-only", since, "HEAD", "--", "src", "python") or "").split() if since else []
    return {family for family in families
            if any(fnmatch.fnmatch(file, pattern) for file in files for pattern in SOURCES.get(family, ["src/backends/cpu/*"]))}
