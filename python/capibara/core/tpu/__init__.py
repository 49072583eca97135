"""Plans and settings for TPU slices, meshes, sharded models and jobs of several hosts; nothing here needs a TPU."""
from typing import TYPE_CHECKING

from capibara._modules import explain_missing
from capibara.core.tpu._diagnosis import diagnose_tpu  # noqa: F401
from capibara._errors import TPUError  # noqa: F401
from capibara.core.tpu._flags import check_xla_flags, enable_xla_optimizations, set_xla_flags  # noqa: F401
from capibara.core.tpu._hosts import MultiHostConfig  # noqa: F401
from capibara.core.tpu._loads import (  # noqa: F401
    balance_experts, device_load, device_seconds, reorder_experts, reshard, tokens_by_device)
from capibara.core.tpu._meshes import MeshConfig, create_mesh  # noqa: F401
from capibara.core.tpu._planning import (  # noqa: F401
    MemoryOptimizer, analyze_bottlenecks, diagnose_performance, enable_gradient_checkpointing, estimate_step, find_optimal_batch_size)
from capibara.core.tpu._quantization import quantize_for_tpu  # noqa: F401
from capibara.core.tpu._strategies import Rule, shard_model, sharding_table, strategies  # noqa: F401
from capibara.core.tpu.tpu_config import ScalingConfig, TPUConfig, configure_tpu_environment  # noqa: F401
from capibara.core.tpu.tpu_v6_vq_integration import TPUv6VQIntegration  # noqa: F401
from capibara.jax.sharding import Mesh, PartitionSpec  # noqa: F401

if TYPE_CHECKING:  # imported on first use, see below
    from capibara.operate.checkpointer import TPUCheckpointer as TPUCheckpointer
    from capibara.operate.monitor import TPUMonitor as TPUMonitor
    from capibara.operate.profiler import TPUProfiler as TPUProfiler
    from capibara.training import TPUTrainer as TPUTrainer

__all__ = [
    "MemoryOptimizer", "Mesh", "MeshConfig", "MultiHostConfig", "PartitionSpec", "Rule", "ScalingConfig",
    "TPUConfig", "TPUError", "TPUv6VQIntegration", "analyze_bottlenecks", "balance_experts", "check_xla_flags",
    "configure_tpu_environment", "create_mesh", "device_load", "device_seconds", "diagnose_performance",
    "diagnose_tpu", "enable_gradient_checkpointing", "enable_xla_optimizations", "estimate_step",
    "find_optimal_batch_size", "quantize_for_tpu", "reorder_experts", "reshard", "set_xla_flags", "shard_model",
    "sharding_table", "strategies", "tokens_by_device"
]

# Trainers and monitoring are in separate packages, which import this one.
explain_missing(__name__, later={"TPUTrainer": "capibara.training", "TPUCheckpointer": "capibara.operate.checkpointer",
                                 "TPUMonitor": "capibara.operate.monitor", "TPUProfiler": "capibara.operate.profiler"})
