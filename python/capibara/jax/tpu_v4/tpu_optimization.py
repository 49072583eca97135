"""Settings of the TPU compiler for a slice, each checked against libtpu's own flags before it is set."""
from collections.abc import Sequence
import math
import os
import warnings

import capibara.jax as jax
from capibara import _core, _tracebacks
from capibara.core.tpu import TPUConfig, TPUError, _planning, _probe, create_mesh, diagnose_tpu, enable_xla_optimizations, set_xla_flags
from capibara.core.tpu._flags import libtpu_arguments
from capibara.core.tpu.tpu_config import set_environment

_enabled = []


def configure_tpu(tpu_type: str | None = None, use_bf16: bool = True, enable_flash_attention: bool = True,
                  enable_collective_ops: bool = True) -> dict[str, object]:
    """Sets flags and the precision of matmuls for a slice such as v6e-64; returns what was set and the slice.

    `use_bf16` sets jax_default_matmul_precision; `enable_flash_attention` sets what plans assume for attention: a fused kernel, or scores
    in memory.
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
    """Sets the environment for a TPU and, if there are enough devices, makes its mesh; returns what was set, found and not set, and
    logs the latter.

    `tpu_name` is a label, or a slice such as v6e-64, which is then validated.
    """
    found = diagnose_tpu()
    result = {"name": tpu_name, "summary": found["summary"], "slice": None, "mesh": None, "flags": None}
    if tpu_name:
        try:
            result["slice"] = _core.tpu.slice(tpu_name)
        except ValueError:
            pass  # a user-defined label, such as capibara-tpu-v6e
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
    flags = os.environ["LIBTPU_INIT_ARGS"] if enable_xla_flags else "not set: enable_xla_flags=False"
    result["environment"] = _core.tpu.platforms({"LIBTPU_INIT_ARGS": flags})
    set_environment("setup_tpu_v4", result["environment"], f"; no mesh: {result['mesh_problem']}" if "mesh_problem" in result else "")
    return result


def enable_all_optimizations() -> dict[str, object]:
    """Sets the flags of level 3; returns what was set and which of these are libtpu's defaults."""
    done = enable_xla_optimizations(3)
    _enabled[:] = sorted(done["set"])
    return done


def verify_optimizations() -> dict[str, object]:
    """Checks that the libtpu of this process read each enabled flag: {"active", "loaded", "flags", "origin"}.

    "active" is True only if libtpu is loaded and read all of them; others cause a warning. If libtpu is installed but not loaded yet,
    it compiles a probe in a child process, whose flags are read back as "compiled". Nothing runs on a TPU.
    """
    requested = _core.tpu.read_init_args(os.environ.get("LIBTPU_INIT_ARGS", ""))
    read = libtpu_arguments()
    compiled, problem = _probe.read_back() if read is None else ({}, "")
    flags = {}
    for name in _enabled or sorted(requested):
        verdict = _core.tpu.check_flag(name, requested.get(name, ""))
        default = verdict["default"].strip("'")
        flags[name] = {"requested": requested.get(name), "value": None if read is None else read.get(name, default),
                       "compiled": compiled.get(name), "known": verdict["accepted"], "default": default,
                       "is_default": verdict["is_default"]}
    differ = [name for name, row in flags.items() if row["requested"] is None or row["value"] != row["requested"]]
    if read is None:
        origin = "not loaded: libtpu is not loaded in this process, so that no flag is active yet" + \
            (f" ({problem})" if problem else "; a probe in a child process was compiled with \"compiled\"")
    elif not flags:
        origin = "no flag is set"
    else:
        origin = f"without effect, since libtpu was loaded before: {', '.join(differ)}" if differ else "read by the libtpu of this process"
    active = read is not None and bool(flags) and not differ
    if not active:
        warnings.warn(f"verify_optimizations: {origin}", RuntimeWarning, stacklevel=3)
    return {"active": active, "loaded": read is not None, "flags": flags, "origin": origin}


__all__ = ["TPUConfig", "configure_tpu", "enable_all_optimizations", "setup_tpu_v4", "verify_optimizations"]
_tracebacks.guard(__name__)
