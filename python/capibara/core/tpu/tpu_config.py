"""TPUConfig: the hardware a program is for and how it should use it; every field acts, and is checked whenever it is set."""
import dataclasses
import difflib
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import capibara.jax as jax
from capibara import _core, _tracebacks
from capibara._errors import TPUError
from capibara.core.tpu._diagnosis import diagnose_tpu
from capibara.core.tpu._figures import with_figures
from capibara.core.tpu._flags import set_xla_flags
from capibara.core.tpu._models import planned
from capibara.core.tpu._strategies import spec_of
from capibara.jax.sharding import PartitionSpec
from capibara.operate.profiler import usage

_log = logging.getLogger("capibara.tpu")


@dataclasses.dataclass
class ScalingConfig:
    """The load, from 0 to 1, above which a device counts as overloaded."""

    load_threshold: float = 0.8


@dataclasses.dataclass
class TPUConfig:
    """A slice of a TPU generation, precision, compiler, memory and communication.

    `memory_per_chip` (bytes, or a text such as "32GB") and `flops_per_chip` override the table of chips. A topology that is not the
    shape of a slice is taken as the logical mesh, which `validate` reports.

    `precision` sets the types of computation and parameters: "float32" both, "bfloat16" both, "mixed" bfloat16 and float32. Each of
    `compute_dtype`, `param_dtype`, `fp32_params` and `use_mixed_precision` that is passed, or assigned later, overrides its part of
    that. The type of parameters affects the memory of plans, the type of computation affects peaks.
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
        if name in _core.tpu.config_fields() and "_native" in self.__dict__:
            self._native.set(name, value)
            self.__dict__.update(self._native.fields())  # fields about types change together
        else:
            object.__setattr__(self, name, value)

    def __post_init__(self):
        self._native = _core.tpu.TPUConfig({name: getattr(self, name) for name in _core.tpu.config_fields()})
        self.__dict__.update(self._native.fields())

    def __getstate__(self):
        return {name: getattr(self, name) for name in _NAMES}

    def __setstate__(self, state):
        self.__init__(**state)

    def validate(self) -> list[str]:
        """Remarks about the configuration; raises TPUError, naming the choices, for values that no TPU has."""
        return self._native.validate()

    @property
    def memory_bytes(self) -> float:
        """HBM of one chip."""
        return self._native.memory_bytes

    @property
    def slice_name(self) -> str:
        """The name under which the slice is rented, such as v4-32."""
        return self._native.slice_name

    def get_total_tflops(self) -> float:
        """Peak of all chips for `compute_dtype`; float32 takes six passes of bfloat16, as XLA's highest precision does."""
        return self._native.get_total_tflops()

    def remat_policy(self) -> str:
        """The planner's remat policy that corresponds to the memory fields."""
        return self._native.remat_policy()

    def training(self, model: object = "1b", sequence_length: int = 2048, batch_size_per_chip: int | None = None) -> dict[str, object]:
        """The planner's input for this configuration."""
        return self._native.training(planned(model, "TPUConfig.training"), sequence_length, batch_size_per_chip)

    def get_performance_metrics(self, model: object = "1b", sequence_length: int = 2048) -> dict[str, Any]:
        """Peaks of the slice from the vendor's tables; utilization and samples per second are modelled, for a training step of `model`,
        and print as such. They are absent, "-", unless the computation is in bfloat16, the only type that the model covers.

        The bandwidth of the interconnect is that of the links between the slice's chips, in both directions.
        """
        found = self._native.get_performance_metrics(planned(model, "TPUConfig.get_performance_metrics"), sequence_length)
        return with_figures(found, "utilization", "throughput_samples_s") | {"measured_utilization": None}

    def get_sharding_spec(self, tensor_shape: Sequence[int]) -> PartitionSpec:
        """Splits the first dimension (batch) over 'data' and the last (features) over 'model'; axes that do not divide are left out."""
        shape = tuple(int(size) for size in tensor_shape)
        spec = spec_of(self._native.sharding_spec(list(shape)))
        if self.log_device_placement:
            _log.warning("an array of shape %s is placed as %s on a mesh of %d x %d", shape, spec, *self.logical_mesh())
        return spec

    def logical_mesh(self) -> tuple[int, ...]:
        """(data, model): mesh_shape, or a topology of two dimensions, or the squarest grid."""
        return self._native.logical_mesh()

    def get_memory_config(self) -> dict[str, object]:
        """Types, memory of a chip, and the recomputation settings."""
        return self._native.get_memory_config()

    def detect_hotspots(self, load: ArrayLike) -> list[tuple[int, int]]:
        """[(row, column)] of the devices whose load is above scaling_config.load_threshold."""
        return self._native.detect_hotspots(np.asarray(load), self.scaling_config.load_threshold)

    def optimize_sharding(self, load: ArrayLike | None = None) -> PartitionSpec:
        """Splits the dimension with overloaded devices over both axes: the batch if more rows than columns have hotspots."""
        if load is not None:
            self.detect_hotspots(load)
        return spec_of(self._native.optimize_sharding())

    def profile_tpu_usage(self, function: Callable[..., object] | None = None, *args: object,
                          trace_dir: str = "/tmp/tpu_trace") -> dict[str, object]:
        """Memory in bytes, devices, and their share of the peak rate while function(*args) runs; writes a trace to a folder."""
        return usage(trace_dir, function, *args)

    def xla_flags(self) -> dict[str, str]:
        """The compiler's flags that correspond to the fields."""
        return self._native.xla_flags()

    def setup_environment_variables(self) -> dict[str, str | None]:
        """Sets LIBTPU_INIT_ARGS, and JAX_PLATFORMS if a TPU is present; returns {variable: value, or why it is not set}, and logs it."""
        set_xla_flags(self.xla_flags())
        done = self._native.environment(_core.tpu.chip_of_this_machine() is not None)
        set_environment("TPUConfig", done)
        return done

    def enable_debugging_mode(self) -> "TPUConfig":
        """Checks every result for NaN and infinity and logs what is compiled."""
        for name in ("jax_debug_nans", "jax_debug_infs", "jax_log_compiles"):
            jax.config.update(name, True)
        return self


_NAMES = tuple(field.name for field in dataclasses.fields(TPUConfig))


def set_environment(who, done, more=""):
    """Sets the variables of {variable: value, or "not set: why"} and logs in one line which were set and which were not."""
    os.environ.update({name: value for name, value in done.items() if not value.startswith("not set: ")})
    _log.warning("%s", _core.tpu.environment_text(who, done) + more)


def configure_tpu_environment(config: TPUConfig | None = None) -> dict[str, object]:
    """Sets the environment for the TPU that is present, or for a configuration; returns what was found and set."""
    found = diagnose_tpu()
    chosen = config or TPUConfig(tpu_version=found["chips"][0] if found["chips"] else "v4")
    return {"summary": found["summary"], "environment": chosen.setup_environment_variables()}


_tracebacks.guard(__name__)
