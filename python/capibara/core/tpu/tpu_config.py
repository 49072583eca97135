"""TPUConfig: the hardware a program is for and how it should use it; every field acts, and is checked whenever it is set."""
import dataclasses
import difflib
import logging
import math
import os
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

import capibara.jax as jax
from capibara import _core, _tracebacks
from capibara.core.tpu._diagnosis import diagnose_tpu
from capibara.core.tpu._errors import TPUError
from capibara.core.tpu._figures import Absent, Figure
from capibara.core.tpu._flags import set_xla_flags
from capibara.core.tpu._models import describe, request_of, require_numbers
from capibara.jax.sharding import PartitionSpec
from capibara.operate.profiler import usage

_log = logging.getLogger("capibara.tpu")
_CHOICES = {
    "precision": ("bfloat16", "float32", "mixed"),
    "memory_optimization": ("none", "normal", "aggressive"),
    "compute_dtype": ("bfloat16", "float32", "int8"),
    "param_dtype": ("bfloat16", "float32"),
}
_FLAGS = ("use_mixed_precision", "fp32_params", "enable_xla_fusion", "enable_async_collective", "enable_rematerialization",
          "gradient_checkpointing", "communication_optimization", "use_collective_matmul", "enable_profiling", "log_device_placement")
_PASSES = 6  # of bfloat16 that XLA makes of a float32 matmul at the highest precision
_DTYPES = ("precision", "compute_dtype", "param_dtype", "fp32_params", "use_mixed_precision")
_UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "TIB": 2**40, "GIB": 2**30, "MIB": 2**20}


@dataclasses.dataclass
class ScalingConfig:
    """When a device counts as overloaded: a load above `load_threshold`, from 0 to 1."""

    load_threshold: float = 0.8


@dataclasses.dataclass
class TPUConfig:
    """A slice of a TPU generation, precision, compiler, memory and communication.

    `memory_per_chip` (bytes, or a text such as "32GB") and `flops_per_chip` replace the figures of the table of chips. A topology that
    is no shape of a slice is taken as the logical mesh, which `validate` says.

    `precision` sets the types of computation and parameters: "float32" both, "bfloat16" both, "mixed" bfloat16 and float32. Each of
    `compute_dtype`, `param_dtype`, `fp32_params` and `use_mixed_precision` that is given, or assigned later, changes its part of
    that. Parameters count in the memory of plans, the type of computation in peaks.
    """

    tpu_version: str = "v4"
    num_chips: int = 4
    topology: str | None = None
    memory_per_chip: int | str | None = None
    flops_per_chip: float | None = None
    precision: str = "mixed"
    compute_dtype: str | None = None
    param_dtype: str | None = None
    use_mixed_precision: bool | None = None
    fp32_params: bool | None = None
    xla_optimization_level: int = 2
    enable_xla_fusion: bool = True
    enable_async_collective: bool = True
    memory_optimization: str = "normal"
    enable_rematerialization: bool = True
    gradient_checkpointing: bool = False
    communication_optimization: bool = True
    use_collective_matmul: bool = False
    enable_profiling: bool = False
    log_device_placement: bool = False
    batch_size_per_chip: int = 8
    mesh_shape: tuple | None = None
    scaling_config: ScalingConfig = dataclasses.field(default_factory=ScalingConfig)

    def __setattr__(self, name, value):
        if name not in _NAMES and not name.startswith("_"):
            near = difflib.get_close_matches(name, _NAMES, n=1)
            raise AttributeError(f"TPUConfig has no field '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
        ready = getattr(self, "_ready", False)
        if value is None and name in _DTYPES:
            if ready:
                raise TPUError(f"TPUConfig: {name} is {_expected(name)}, got None")
            return object.__setattr__(self, name, None)
        before = dict(self.__dict__)
        object.__setattr__(self, name, _checked(name, value))
        if ready:
            try:
                if name in _DTYPES:
                    self._settle(name)
                self._check_together()
            except TPUError:
                self.__dict__.update(before)  # what is refused changes nothing
                raise

    def __post_init__(self):
        given = {name: getattr(self, name) for name in _DTYPES}
        for name, value in given.items():
            if value is not None:
                object.__setattr__(self, name, value)
                self._settle(name)
        self._check_together()
        object.__setattr__(self, "_ready", True)

    def _settle(self, name):
        """What a field about types means for the others of them."""
        compute, parameters = self.compute_dtype, self.param_dtype
        if name == "precision":
            compute = "float32" if self.precision == "float32" else "bfloat16"
            parameters = "bfloat16" if self.precision == "bfloat16" else "float32"
        elif name == "fp32_params":
            parameters = "float32" if self.fp32_params else "bfloat16"
        elif name == "use_mixed_precision":
            if self.use_mixed_precision and (compute == "float32" or parameters != "float32"):
                raise TPUError(f"TPUConfig: use_mixed_precision=True computes in bfloat16 on parameters in float32, but compute_dtype="
                               f"{compute!r} and param_dtype={parameters!r}; assign those first")
            if not self.use_mixed_precision:
                compute = parameters
        self.__dict__.update(compute_dtype=compute, param_dtype=parameters, fp32_params=parameters == "float32",
                             use_mixed_precision=compute != parameters)

    def _check_together(self):
        self._slice()
        if self.compute_dtype == "int8" and not _core.tpu.chip(self.tpu_version)["int8_tops"]:
            raise TPUError(f"TPUConfig: compute_dtype='int8': {self.tpu_version} has no units for int8")
        if self.mesh_shape is not None and math.prod(self.mesh_shape) != self.num_chips:
            raise TPUError(f"TPUConfig: mesh_shape={self.mesh_shape} is for {math.prod(self.mesh_shape)} chips, but "
                           f"num_chips={self.num_chips}")
        if self.topology is not None and math.prod(map(int, self.topology.split("x"))) != self.num_chips:
            raise TPUError(f"TPUConfig: topology='{self.topology}' has {math.prod(map(int, self.topology.split('x')))} chips, but "
                           f"num_chips={self.num_chips}")

    def _slice(self):
        """The slice, and whether the topology is one of its shapes."""
        chip = _core.tpu.chip(self.tpu_version)["name"]
        if self.topology is not None:
            try:
                return _core.tpu.slice_of(chip, self.num_chips, self.topology), True
            except ValueError:
                pass
        try:
            return _core.tpu.slice_of(chip, self.num_chips, ""), self.topology is None
        except ValueError as error:
            raise TPUError(str(error)) from None

    def validate(self) -> list[str]:
        """Remarks about the configuration; raises TPUError, naming the choices, for what no TPU has."""
        self._check_together()
        found, is_shape = self._slice()
        physical = "x".join(map(str, found["shape"]))
        notes = []
        if not is_shape:
            notes.append(f"{self.num_chips} {found['chip']} chips are {found['name']} = {physical}; the topology "
                         f"{self.topology} is taken as the logical mesh")
        chip = _core.tpu.chip(self.tpu_version)
        if self.memory_per_chip is not None and abs(self.memory_bytes / (chip["hbm_gb"] * 1e9) - 1) > 0.1:
            notes.append(f"memory_per_chip is {self.memory_bytes / 1e9:.1f} GB; a {chip['name']} chip has {chip['hbm_gb']:g} GB")
        if self.flops_per_chip is not None and abs(self.flops_per_chip / (chip["bf16_tflops"] * 1e12) - 1) > 0.1:
            notes.append(f"flops_per_chip is {self.flops_per_chip:.4g}; the vendor prints {chip['bf16_tflops']:g}e12 in bf16 "
                         f"for {chip['name']}")
        if self.gradient_checkpointing and not self.enable_rematerialization:
            notes.append("gradient_checkpointing=True recomputes although enable_rematerialization=False")
        if self.mesh_shape is not None and self._axes("1b")[1] not in (1, self.mesh_shape[1]):
            fsdp, tensor = self._axes("1b")
            notes.append(f"mesh_shape={self.mesh_shape}: {self.mesh_shape[1]} does not divide the heads of the preset 1b, which is planned "
                         f"with fsdp={fsdp},tensor={tensor}")
        return notes

    @property
    def memory_bytes(self) -> float:
        """HBM of one chip."""
        if self.memory_per_chip is None:
            return _core.tpu.chip(self.tpu_version)["hbm_gb"] * 1e9
        return float(self.memory_per_chip)

    @property
    def slice_name(self) -> str:
        """v4-32: the name that the slice is rented by."""
        return self._slice()[0]["name"]

    def _peak(self):
        if self.flops_per_chip is not None:
            return self.flops_per_chip
        chip = _core.tpu.chip(self.tpu_version)
        if self.compute_dtype == "int8":
            return chip["int8_tops"] * 1e12
        return chip["bf16_tflops"] * 1e12 / (_PASSES if self.compute_dtype == "float32" else 1)

    def get_total_tflops(self) -> float:
        """Peak of all chips for `compute_dtype`; float32 takes six passes of bfloat16, as XLA's highest precision does."""
        return self._peak() * self.num_chips / 1e12

    def remat_policy(self) -> str:
        """The planner's remat policy that the memory fields mean."""
        if self.gradient_checkpointing or self.memory_optimization == "aggressive":
            return "full"
        return "minimal" if self.enable_rematerialization and self.memory_optimization == "normal" else "none"

    def training(self, model: object = "1b", sequence_length: int = 2048, batch_size_per_chip: int | None = None) -> dict[str, object]:
        """What the planner is asked for this configuration."""
        require_numbers("TPUConfig.training", sequence_length=sequence_length, batch_size_per_chip=batch_size_per_chip)
        found, sizes = self._slice()[0], describe(model, "TPUConfig.training")
        per_chip = batch_size_per_chip or self.batch_size_per_chip
        request = {"model": model if isinstance(model, str) else request_of(sizes),
                   "tpu": found["topology"].replace("v5:", "v5p:"), "sequence": sequence_length, "remat": self.remat_policy(),
                   "batch_per_device": per_chip * self.num_chips / found["devices"],
                   "state_bytes": (4 if self.param_dtype == "float32" else 2) + 8}
        if self.memory_per_chip is not None:
            request["hbm_gib"] = self.memory_bytes / 2**30 / (found["devices"] / found["chips"])
        if self.flops_per_chip is not None:
            request["peak_tflops"] = self.flops_per_chip / 1e12
        fsdp, tensor = self._axes(model)
        if tensor > 1:
            request["mesh"] = f"fsdp={fsdp},tensor={tensor}"
        return request

    def _axes(self, model):
        """(fsdp, tensor) that a model is planned with: what does not divide its heads goes to fsdp."""
        found = self._slice()[0]
        if self.mesh_shape is None or len(self.mesh_shape) != 2:
            return found["devices"], 1
        heads = next((row["heads"] for row in _core.tpu.models() if row["name"] == model), 0)
        tensor = math.gcd(self.mesh_shape[1], heads) if heads else self.mesh_shape[1]
        return found["devices"] // tensor, tensor

    def get_performance_metrics(self, model: str = "1b", sequence_length: int = 2048) -> dict[str, object]:
        """Peaks of the slice from the vendor's tables; utilization and samples per second are modelled, for a training step of `model`,
        and their text says so. They are absent, "-", for other types of computation than bfloat16, which the model does not know.

        The bandwidth of the interconnect is that of the links between the slice's chips, both ways.
        """
        chip = _core.tpu.chip(self.tpu_version)
        request = self.training(model, sequence_length)
        if self.compute_dtype == "bfloat16":
            step = _core.tpu.plan_step(request)
            origin = f"modelled: training {model} at {self.batch_size_per_chip} sequences of {sequence_length} on a chip" \
                     f"{', mesh ' + request['mesh'] if 'mesh' in request else ''}; nothing was run on a TPU"
            utilization, samples = Figure(step["mfu"], origin), Figure(step["tokens_per_second"] / sequence_length, origin)
        else:
            utilization = samples = Absent(f"plans are modelled for computation in bfloat16, not in {self.compute_dtype}")
        return {
            "total_tflops": self.get_total_tflops(),
            "memory_bandwidth_gb_s": chip["hbm_gbps"] * self.num_chips,
            "interconnect_bandwidth_gb_s": 2 * chip["ici_link_gbps"] * self._slice()[0]["links"],
            "utilization": utilization,
            "throughput_samples_s": samples,
            "measured_utilization": None,
        }

    def get_sharding_spec(self, tensor_shape: Sequence[int]) -> PartitionSpec:
        """Batches over 'data' along the first dimension, features over 'model' along the last; axes that do not divide are left out."""
        shape = tuple(int(size) for size in tensor_shape)
        data, model = self.logical_mesh()
        entries = [None] * len(shape)
        if shape and shape[0] % data == 0:
            entries[0] = "data"
        if len(shape) > 1 and shape[-1] % model == 0:
            entries[-1] = "model"
        spec = PartitionSpec(*entries)
        if self.log_device_placement:
            _log.warning("an array of shape %s is placed as %s on a mesh of %d x %d", shape, spec, data, model)
        return spec

    def logical_mesh(self) -> tuple[int, ...]:
        """(data, model): mesh_shape, or a topology of two dimensions, or the squarest grid."""
        if self.mesh_shape is not None:
            return self.mesh_shape if len(self.mesh_shape) == 2 else (self.mesh_shape[0], math.prod(self.mesh_shape[1:]))
        if self.topology is not None and self.topology.count("x") == 1:
            return tuple(map(int, self.topology.split("x")))
        model = next(size for size in range(math.isqrt(self.num_chips), 0, -1) if self.num_chips % size == 0)
        return self.num_chips // model, model

    def get_memory_config(self) -> dict[str, object]:
        """Types, memory of a chip, and what is recomputed."""
        chip = _core.tpu.chip(self.tpu_version)
        return {"use_mixed_precision": self.use_mixed_precision, "compute_dtype": self.compute_dtype, "param_dtype": self.param_dtype,
                "memory_per_chip": self.memory_bytes, "usable_gib_per_device": chip["usable_hbm_gib"], "remat_policy": self.remat_policy(),
                "memory_optimization": self.memory_optimization}

    def detect_hotspots(self, load: ArrayLike) -> list[tuple[int, int]]:
        """[(row, column)] of the devices whose load is above scaling_config.load_threshold."""
        load = np.asarray(load)
        if load.ndim != 2:
            raise TPUError(f"detect_hotspots: load is a matrix with one entry for each device, got shape {load.shape}")
        object.__setattr__(self, "_hotspots", [(int(i), int(j)) for i, j in np.argwhere(load > self.scaling_config.load_threshold)])
        return list(self._hotspots)

    def optimize_sharding(self, load: ArrayLike | None = None) -> PartitionSpec:
        """Splits over both axes the dimension whose devices are overloaded: batches where more rows have hotspots than columns."""
        if load is not None:
            self.detect_hotspots(load)
        elif not hasattr(self, "_hotspots"):
            raise TPUError("optimize_sharding: needs a load, or a call of detect_hotspots before")
        rows, columns = {i for i, _ in self._hotspots}, {j for _, j in self._hotspots}
        if len(rows) > len(columns):
            return PartitionSpec(("data", "model"), None)
        return PartitionSpec(None, ("data", "model"))

    def profile_tpu_usage(self, function: Callable[..., object] | None = None, *args: object,
                          trace_dir: str = "/tmp/tpu_trace") -> dict[str, object]:
        """Memory in bytes, devices, and their share of the peak rate while function(*args) runs; a trace of it goes to a folder."""
        return usage(trace_dir, function, *args)

    def xla_flags(self) -> dict[str, str]:
        """The compiler's flags that the fields mean."""
        flags = _core.tpu.chosen_flags(self.xla_optimization_level, self.enable_xla_fusion, self.enable_async_collective, True, True)
        flags["xla_tpu_enable_data_parallel_all_reduce_opt"] = "true" if self.communication_optimization else "false"
        if self.use_collective_matmul:
            flags["xla_jf_spmd_threshold_for_windowed_einsum_mib"] = "0"
        flags["xla_enable_profiler"] = "true" if self.enable_profiling else "false"
        return flags

    def setup_environment_variables(self) -> dict[str, str | None]:
        """Sets LIBTPU_INIT_ARGS, and JAX_PLATFORMS where a TPU is here; returns {variable: value, or why it is not set}, and logs it."""
        set_xla_flags(self.xla_flags())
        done = set_platforms({"LIBTPU_INIT_ARGS": os.environ["LIBTPU_INIT_ARGS"]})
        for name in ("XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE"):
            done[name] = "not set: a setting of GPUs, without effect on a TPU"
        _log.warning("%s", environment_text("TPUConfig", done))
        return done

    def enable_debugging_mode(self) -> "TPUConfig":
        """Checks every result for NaN and infinity and logs what is compiled."""
        for name in ("jax_debug_nans", "jax_debug_infs", "jax_log_compiles"):
            jax.config.update(name, True)
        return self


_NAMES = tuple(field.name for field in dataclasses.fields(TPUConfig))


def _expected(name):
    return f"one of {', '.join(_CHOICES[name])}" if name in _CHOICES else "True or False"


def _checked(name, value):
    if name in _CHOICES and value not in _CHOICES[name]:
        raise TPUError(f"TPUConfig: {name} is {_expected(name)}, got {value!r}")
    if name in _FLAGS and not isinstance(value, (bool, np.bool_)):
        raise TPUError(f"TPUConfig: {name} is True or False, got {value!r}")
    if name == "tpu_version":
        try:
            return _core.tpu.chip(str(value))["name"]
        except ValueError as error:
            raise TPUError(str(error)) from None
    if name in ("num_chips", "batch_size_per_chip") and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
        raise TPUError(f"TPUConfig: {name} is a positive integer, got {value!r}")
    if name in ("num_chips", "batch_size_per_chip") and value >= 2**31:
        raise TPUError(f"TPUConfig: {name} is below 2^31, got {value!r}")
    if name == "xla_optimization_level" and value not in (0, 1, 2, 3):
        raise TPUError(f"TPUConfig: xla_optimization_level is from 0 to 3, got {value!r}")
    if name == "topology" and value is not None and not all(part.isdigit() and int(part) > 0 for part in str(value).split("x")):
        raise TPUError(f"TPUConfig: a topology is written 8x8 or 2x2x4, got {value!r}")
    if name == "memory_per_chip" and value is not None:
        return _bytes(value)
    if name == "flops_per_chip" and value is not None and not float(value) > 0:
        raise TPUError(f"TPUConfig: flops_per_chip is a positive number, got {value!r}")
    return tuple(int(size) for size in value) if name == "mesh_shape" and value is not None else value


def _bytes(value):
    if isinstance(value, str):
        digits = value.upper().rstrip("BIGMT").strip()
        unit = value.upper()[len(digits):].strip()
        if unit not in _UNITS:
            raise TPUError(f"TPUConfig: memory_per_chip is a number of bytes or a text such as '32GB', got {value!r}")
        value = float(digits) * _UNITS[unit]
    if not value > 0:
        raise TPUError(f"TPUConfig: memory_per_chip is positive, got {value!r}")
    return int(value)


def set_platforms(done):
    """JAX_PLATFORMS where a TPU is here, added to {variable: value, or why it is not set}."""
    if diagnose_tpu(libraries=False)["chips"]:
        os.environ.setdefault("JAX_PLATFORMS", "tpu,cpu")
        done["JAX_PLATFORMS"] = os.environ["JAX_PLATFORMS"]
    else:
        done["JAX_PLATFORMS"] = "not set: there is no TPU here"
    done["XLA_FLAGS"] = "not set: jaxlib ends the process at flags of the TPU compiler there"
    return done


def environment_text(who, done):
    """One line of what was set and what not."""
    left = [f"{name} ({text.removeprefix('not set: ')})" for name, text in done.items() if text.startswith("not set: ")]
    placed = [name for name, text in done.items() if not text.startswith("not set: ")]
    return f"{who}: set {', '.join(placed) or 'nothing'}" + (f"; not set: {', '.join(left)}" if left else "")


def configure_tpu_environment(config: TPUConfig | None = None) -> dict[str, object]:
    """Sets the environment for the TPU that is here, or for a configuration; returns what was found and set."""
    found = diagnose_tpu()
    chosen = config or TPUConfig(tpu_version=found["chips"][0] if found["chips"] else "v4")
    return {"summary": found["summary"], "environment": chosen.setup_environment_variables()}


_tracebacks.guard(__name__)
