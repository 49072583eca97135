"""The Python and C++ toolboxes agree on twenty configurations and on rejected ones."""
import os
import pathlib
import subprocess

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
import capibara.jax as jax  # noqa: E402
from capibara import _core  # noqa: E402
from capibara.core import tpu  # noqa: E402
from capibara.core.tpu import TPUConfig  # noqa: E402

CONFIGURATIONS = [
    {},
    {"num_chips": 32, "topology": "4x8", "memory_per_chip": 32 * 1024**3, "flops_per_chip": 275e12, "compute_dtype": "bfloat16",
     "param_dtype": "float32"},
    {"tpu_version": "v6e", "num_chips": 64, "topology": "8x8"},
    {"tpu_version": "v6e", "num_chips": 64, "topology": "8x8", "memory_per_chip": "32GB", "precision": "bfloat16",
     "use_mixed_precision": True, "fp32_params": True, "xla_optimization_level": 3, "memory_optimization": "aggressive",
     "gradient_checkpointing": True, "use_collective_matmul": True},
    {"tpu_version": "v6e", "num_chips": 64, "mesh_shape": (4, 16)},
    {"tpu_version": "v6e", "num_chips": 256, "precision": "float32"},
    {"tpu_version": "v5e", "num_chips": 16, "precision": "bfloat16"},
    {"tpu_version": "v5e", "num_chips": 4, "compute_dtype": "int8"},
    {"tpu_version": "v5e", "num_chips": 1, "batch_size_per_chip": 2},
    {"tpu_version": "v5p", "num_chips": 64, "enable_rematerialization": False},
    {"tpu_version": "v5p", "num_chips": 8, "enable_async_collective": False, "enable_xla_fusion": False},
    {"tpu_version": "v4", "num_chips": 16, "topology": "2x2x4"},
    {"tpu_version": "v4", "num_chips": 64, "memory_optimization": "none", "gradient_checkpointing": True,
     "enable_rematerialization": False},
    {"tpu_version": "v3", "num_chips": 32, "xla_optimization_level": 0},
    {"tpu_version": "v2", "num_chips": 16, "communication_optimization": False},
    {"tpu_version": "trillium", "num_chips": 8, "enable_profiling": True},
    {"tpu_version": "v6e", "num_chips": 4, "memory_per_chip": "16 GiB", "flops_per_chip": 1e14},
    {"tpu_version": "v5e", "num_chips": 64, "mesh_shape": (32, 2), "param_dtype": "bfloat16"},
    {"tpu_version": "v4", "num_chips": 4, "fp32_params": False},
    {"tpu_version": "tpu7x", "num_chips": 64, "batch_size_per_chip": 4},
]
REFUSED = [{"num_chips": 5}, {"precision": "half"}, {"tpu_version": "v9"}, {"mesh_shape": (3, 3)}, {"num_chip": 4}, {"topology": "wide"},
           {"memory_per_chip": "much"}, {"xla_optimization_level": 7}, {"fp32_params": False, "use_mixed_precision": True},
           {"tpu_version": "v3", "compute_dtype": "int8"}, {"num_chips": 16, "topology": "4x8"}, {"enable_profiling": 1}]


def line_of(fields):
    def text(value):
        if isinstance(value, float):
            return f"{value:e}"
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).replace(" ", "")
    return " ".join(f"{name}={text(value)}" for name, value in fields.items())


class Text(list):
    """Lines in the C++ program's format."""

    def add(self, name, value):
        self.append(f"{name} {float(value):.12g}" if isinstance(value, (int, float)) else f"{name} {value}")

    def spec(self, name, spec):
        entries = [(entry,) if isinstance(entry, str) else entry or () for entry in spec]
        self.append(f"{name} " + "".join("".join(axis + "+" for axis in entry) + "," for entry in entries))


class NamedAxes:
    """A mesh without devices, from the names and sizes of its axes."""

    def __init__(self, **sizes):
        self.axis_names, self.shape = tuple(sizes), sizes


def lines_of_python(config):
    text, slice_name = Text(), config.slice_name
    for note in config.validate():
        text.add("note", note)
    text.add("slice", slice_name)
    text.add("tflops", config.get_total_tflops())
    text.add("memory", config.memory_bytes)
    text.add("remat", config.remat_policy())
    data, model = config.logical_mesh()
    text.add("data", data)
    text.add("model", model)
    metrics = config.get_performance_metrics()
    known = bool(metrics["utilization"])
    text.add("hbm", metrics["memory_bandwidth_gb_s"])
    text.add("ici", metrics["interconnect_bandwidth_gb_s"])
    text.add("utilization", float(metrics["utilization"]) if known else -1)
    text.add("origin", metrics["utilization"].origin if known else metrics["utilization"].reason)
    text.add("samples", float(metrics["throughput_samples_s"]) if known else -1)
    text.spec("spec", config.get_sharding_spec((64, 3, 128)))
    memory = config.get_memory_config()
    text.add("types", f"{memory['compute_dtype']} {memory['param_dtype']}" + (" mixed" if memory["use_mixed_precision"] else ""))
    for name, value in config.xla_flags().items():
        text.append(f"{name} {value}")
    training = config.training("1.3b", 1024, 4)
    text.add("total_gib", _core.tpu.plan_memory(training)["total_gib"])
    text.add("seconds", _core.tpu.plan_step(training)["seconds"])
    for row, column in config.detect_hotspots(np.arange(16).reshape(2, 8) % 5 / 4):
        text.append(f"hotspot {row} {column}")
    text.spec("optimized", config.optimize_sharding())
    for strategy in ("none", "normal", "aggressive"):
        found = tpu.MemoryOptimizer(strategy, activation_checkpointing_layers=2).estimate_memory("350m", None, 1024, slice_name)
        text.add("total_gb", found["total_gb"])
        text.add("of", found["total_gb"].origin)
    batch = tpu.find_optimal_batch_size("350m", 1024, tpu=slice_name)
    text.add("batch", int(batch))
    text.add("of", batch.origin)
    found = tpu.analyze_bottlenecks("350m", slice_name, 1024)
    text.add("compute", found["compute_bound"])
    text.add("bound", found["bound"])
    for one in found["recommendations"]:
        text.add("recommendation", one)
    for issue in tpu.diagnose_performance("350m", target_tflops=1e5, tpu=slice_name, sequence_length=1024)["issues"]:
        text.add("issue", f"{issue['problem']}: {issue['impact']}: {issue['solution']}")
    shape = jax.ShapeDtypeStruct
    types = {"embed": {"table": shape((256, 64), "float32")}, "norm": {"scale": shape((64,), "float32")},
             "layers": [{"q_proj": {"weight": shape((64, 64), "float32")}, "down": {"weight": shape((256, 64), "bfloat16")},
                         "experts": {"up": shape((4, 64, 256), "float32")}}]}
    for strategy in ("fsdp", "megatron", "expert"):
        text += f"table {tpu.sharding_table(types, NamedAxes(data=data, model=model, expert=2), strategy)}".splitlines()
    return text


def lines_of_cpp(configurations):
    program = pathlib.Path(os.environ["CAPIBARA_BUILD"], "tests", "tpu_toolbox_program")
    done = subprocess.run([program], input="".join(line_of(fields) + "\n" for fields in configurations), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [part.splitlines()[1:] for part in done.stdout.split("== ")[1:]]


def test_equal_configurations_give_equal_results():
    assert len(CONFIGURATIONS) == 20
    for fields, lines in zip(CONFIGURATIONS, lines_of_cpp(CONFIGURATIONS), strict=True):
        assert len(lines) > 40, lines
        assert lines_of_python(TPUConfig(**fields)) == lines, fields


def test_both_refuse_with_the_same_words():
    for fields, lines in zip(REFUSED, lines_of_cpp(REFUSED), strict=True):
        if "num_chip" in fields:  # not an argument of the class: Python itself raises
            assert "did you mean 'num_chips'" in lines[0]
            continue
        with pytest.raises(tpu.TPUError) as caught:
            TPUConfig(**fields)
        assert [f"error {caught.value}"] == lines, fields


def test_fields_are_those_of_the_core_and_copies_are_equal():
    import copy
    import dataclasses
    import pickle
    names = [field.name for field in dataclasses.fields(TPUConfig)]
    assert names == [*_core.tpu.config_fields(), "scaling_config"]
    config = TPUConfig(tpu_version="v6e", num_chips=64, mesh_shape=(8, 8))
    config.param_dtype, config.compute_dtype = "bfloat16", "float32"
    for same in (copy.copy(config), copy.deepcopy(config), pickle.loads(pickle.dumps(config)), dataclasses.replace(config)):
        assert same == config and repr(same) == repr(config) and same.get_total_tflops() == config.get_total_tflops()
    same.mesh_shape = (4, 16)
    assert config.mesh_shape == (8, 8)
