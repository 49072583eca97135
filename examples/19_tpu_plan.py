"""A plan for a TPU slice: whether a training step fits, how long it takes and what to change. Modelled; nothing runs on a TPU."""

import capibara.jax as jax
from capibara.core.tpu import (MemoryOptimizer, TPUConfig, analyze_bottlenecks, check_xla_flags, estimate_step, find_optimal_batch_size,
                               sharding_table)

BATCH = 2 * 64

for remat, strategy in (("none", "none"), ("minimal", "normal"), ("full", "aggressive")):
    memory = MemoryOptimizer(strategy).estimate_memory("llama3.1-8b", BATCH, 8192, "v6e-64", mesh="fsdp=64")
    step = estimate_step("llama3.1-8b", "v6e-64", 8192, BATCH, mesh="fsdp=64", remat=remat)
    verdict = "fits" if memory["fits"] else "does not fit"
    print(f"remat {remat:<8} {memory['total_gib']:6.1f} of {memory['limit_gib']:.1f} GiB, {verdict}; {step['seconds']:6.3f} s a step, "
          f"{100 * step['mfu']:.0f} % of the peak")
name, size = memory["buffers"][0]
print(f"largest buffer: {name}, {size:.1f} GiB")

# An unknown flag in LIBTPU_INIT_ARGS aborts the process: check first.
print(check_xla_flags({"xla_tpu_enable_latency_hiding_schedule": True})["xla_tpu_enable_latency_hiding_schedule"]["message"])
print(f"v4-32 has 16 chips as {'v4:2x2x4' if TPUConfig(num_chips=16).slice_name == 'v4-32' else '?'}")

# The configuration of a slice: every field has an effect and is checked whenever it is set.
config = TPUConfig(tpu_version="v6e", num_chips=64, topology="8x8")
config.memory_optimization = "aggressive"
metrics = config.get_performance_metrics("1b")
print(f"{config.slice_name}: {metrics['total_tflops']:.0f} TFLOP/s, {100 * metrics['utilization']:.1f} % modelled for 1b, "
      f"remat {config.remat_policy()}")
batch = find_optimal_batch_size("1b", 2048, available_memory_gb=32 * 64)
print(f"batch {int(batch)} on {batch.tpu}")
found = analyze_bottlenecks("llama3.1-8b", "v6e-64", 8192, BATCH, mesh="fsdp=64")
print(f"{found['bound']} bound; {(found['recommendations'] or ['no single change helps'])[0]}")

# How the parameters of a model are placed on a mesh; the table needs no devices.
types = {"embed": jax.ShapeDtypeStruct((512, 64), "float32"), "layer": {"down": jax.ShapeDtypeStruct((256, 64), "float32"),
                                                                        "up": jax.ShapeDtypeStruct((64, 256), "float32")}}
mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"))
print(sharding_table(types, mesh, "megatron"))
