"""Settings of the TPU compiler for a slice: each is checked against libtpu's own flags before it is set."""
from collections.abc import Sequence
import math
import os

import capibara.jax as jax
from capibara import _core, _tracebacks
from capibara.core.tpu import TPUConfig, TPUError, _planning, _probe, create_mesh, diagnose_tpu, enable_xla_optimizations, set_xla_flags

_enabled = []


def configure_tpu(tpu_type: str | None = None, use_bf16: bool = True, enable_flash_attention: bool = True,
                  enable_collective_ops: bool = True) -> dict[str, object]:
    """Sets flags and the precision of matmuls for a slice such as v6e-64; returns what was set and the slice.

    `use_bf16` sets jax_default_matmul_precision; `enable_flash_attention` says what plans assume of attention: a kernel, or scores that
    are written to memory.
    """
    found = _core.tpu.slice(tpu_type) if tpu_type else None
    flags = set_xla_flags({"xla_tpu_enable_async_collective_fusion": enable_collective_ops,
                           "xla_tpu_overlap_compute_collective_tc": enable_collective_ops})
    jax.config.update("jax_default_matmul_precision", "bfloat16" if use_bf16 else "float32")
    _planning.DEFAULTS["flash"] = bool(enable_flash_attention)
    return {"slice": found, "flags": flags, "matmul_precision": "bfloat16" if use_bf16 else "float32",
            "attention": "flash" if enable_flash_attention else "plain"}


def setup_tpu_v4(tpu_name: str | None = None, mesh_shape: Sequence[int] | None = None, enable_xla_flags: bool = True,
                 enable_async_collective: bool = True) -> dict[str, object]:
    """Sets the environment for a TPU and, where there are enough devices, makes its mesh; returns both and what was found.

    `tpu_name` is a label, or a slice such as v6e-64, which is then validated.
    """
    found = diagnose_tpu()
    result = {"name": tpu_name, "summary": found["summary"], "slice": None, "mesh": None, "flags": None}
    if tpu_name:
        try:
            result["slice"] = _core.tpu.slice(tpu_name)
        except ValueError:
            pass  # a name of the user's own, such as capibara-tpu-v6e
    if mesh_shape is not None:
        sizes = mesh_shape if isinstance(mesh_shape, (tuple, list)) else ()
        if not 0 < len(sizes) <= 3 or not all(isinstance(size, int) and size > 0 for size in sizes):
            raise TPUError(f"setup_tpu_v4: mesh_shape is one to three positive integers such as (4, 4), got {mesh_shape!r}")
        count = math.prod(sizes)
        if result["slice"] and result["slice"]["chips"] != count:
            raise TPUError(f"setup_tpu_v4: mesh_shape={tuple(mesh_shape)} is for {count} chips, but {tpu_name} has "
                           f"{result['slice']['chips']}")
        if len(jax.devices()) >= count:
            result["mesh"] = create_mesh(mesh_shape=tuple(mesh_shape), axis_names=("data", "model", "expert")[:len(mesh_shape)])
        else:
            result["mesh_problem"] = f"a mesh of {tuple(mesh_shape)} needs {count} devices; here are {len(jax.devices())}"
    if enable_xla_flags:
        result["flags"] = enable_xla_optimizations(3, enable_async_collective=enable_async_collective)
        _enabled[:] = sorted(result["flags"]["set"])
    return result


def enable_all_optimizations() -> dict[str, object]:
    """The flags of level 3; returns what was set and which of it libtpu does anyway."""
    done = enable_xla_optimizations(3)
    _enabled[:] = sorted(done["set"])
    return done


def verify_optimizations() -> dict[str, object]:
    """Whether each flag that was enabled is active: {"active", "flags", "origin"}.

    Where libtpu is installed it compiles a probe in a child process, whose flags are read back; elsewhere LIBTPU_INIT_ARGS is checked
    against the list of libtpu 0.0.51. Nothing runs on a TPU.
    """
    asked = _core.tpu.read_init_args(os.environ.get("LIBTPU_INIT_ARGS", ""))
    compiled, problem = _probe.read_back()
    flags = {}
    for name in _enabled or sorted(asked):
        verdict = _core.tpu.check_flag(name, asked.get(name, ""))
        flags[name] = {"value": compiled.get(name) if compiled else asked.get(name), "asked": asked.get(name), "known": verdict["accepted"],
                       "default": verdict["default"], "is_default": verdict["is_default"]}
    active = bool(flags) and all(row["known"] and row["asked"] is not None and row["value"] == row["asked"] for row in flags.values())
    origin = "compiled: read back from a probe" if compiled else f"LIBTPU_INIT_ARGS and the flags of libtpu 0.0.51, not compiled: {problem}"
    return {"active": active, "flags": flags, "origin": origin}


__all__ = ["TPUConfig", "configure_tpu", "enable_all_optimizations", "setup_tpu_v4", "verify_optimizations"]
_tracebacks.guard(__name__)
