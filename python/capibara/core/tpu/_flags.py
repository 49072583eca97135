"""Flags of the TPU compiler: checked against libtpu's own list before they are set, since an unknown one ends the process."""
import os
import warnings

from capibara import _core, _tracebacks
from capibara._errors import TPUError


def libtpu_arguments():
    """The flags read by the libtpu that capibara loaded in this process: {flag: value}; None before it is loaded."""
    loaded = _core.tpu.loaded_libtpu()
    return None if loaded is None else _core.tpu.read_init_args(loaded[1])


def _text(value):
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def check_xla_flags(flags):
    """{name: {"accepted", "is_default", "default", "message"}} for each flag, according to libtpu 0.0.51."""
    if not isinstance(flags, dict) or not all(isinstance(name, str) for name in flags):
        raise TPUError(f"set_xla_flags: flags are a dict such as {{'xla_tpu_scoped_vmem_limit_kib': 65536}}, got {flags!r:.80}")
    return {name: _core.tpu.check_flag(name, _text(value)) for name, value in flags.items()}


def set_xla_flags(flags, *, skip_unknown=False):
    """Sets flags in LIBTPU_INIT_ARGS, which libtpu reads when it is loaded; raises TPUError for flags that it would refuse.

    `skip_unknown` skips refused flags and reports them. Returns {"set", "defaults", "refused", "too_late"}: the last are
    flags that this process's libtpu did not read, because it was already loaded; a warning is issued too.
    """
    verdicts = check_xla_flags(flags)
    refused = {name: verdict["message"] for name, verdict in verdicts.items() if not verdict["accepted"]}
    if refused and not skip_unknown:
        raise TPUError("set_xla_flags: " + "; ".join(refused.values()))
    values = {name: _text(value) for name, value in flags.items() if name not in refused}
    os.environ["LIBTPU_INIT_ARGS"] = _core.tpu.merge_init_args(os.environ.get("LIBTPU_INIT_ARGS", ""), values)
    read = libtpu_arguments()
    too_late = [] if read is None else [name for name, value in values.items()
                                        if read.get(name, verdicts[name]["default"].strip("'")) != value]
    if too_late:
        warnings.warn(f"set_xla_flags: libtpu is loaded and read its flags before; without effect in this process: {', '.join(too_late)}",
                      RuntimeWarning, stacklevel=3)
    return {"set": values, "defaults": [name for name in values if verdicts[name]["is_default"]], "refused": refused,
            "too_late": too_late}


def enable_xla_optimizations(level=3, enable_fusion=True, enable_async_collective=True, enable_megacore=True, enable_latency_hiding=True):
    """Sets the compiler's flags for a level from 0 to 3; the answer lists those that are defaults anyway."""
    if isinstance(level, bool) or level not in range(4):
        raise ValueError(f"enable_xla_optimizations: level must be from 0 to 3, got {level!r}")
    return set_xla_flags(_core.tpu.chosen_flags(int(level), enable_fusion, enable_async_collective, enable_megacore, enable_latency_hiding))


_tracebacks.guard(__name__)
