"""A plan for a TPU slice: whether a training step fits, how long it takes and what to change. Modelled; nothing runs on a TPU."""

from capibara.core.tpu import MemoryOptimizer, TPUConfig, check_xla_flags, estimate_step

BATCH = 2 * 64

for remat, strategy in (("none", "none"), ("minimal", "normal"), ("full", "aggressive")):
    memory = MemoryOptimizer(strategy).estimate_memory("llama3.1-8b", BATCH, 8192, "v6e-64", mesh="fsdp=64")
    step = estimate_step("llama3.1-8b", "v6e-64", 8192, BATCH, mesh="fsdp=64", remat=remat)
    verdict = "fits" if memory["fits"] else "does not fit"
    print(f"remat {remat:<8} {memory['total_gib']:6.1f} of {memory['limit_gib']:.1f} GiB, {verdict}; {step['seconds']:6.3f} s a step, "
          f"{100 * step['mfu']:.0f} % of the peak")
name, size = memory["buffers"][0]
print(f"largest buffer: {name}, {size:.1f} GiB")

# An unknown flag in LIBTPU_INIT_ARGS ends the process: ask first.
print(check_xla_flags({"xla_tpu_enable_latency_hiding_schedule": True})["xla_tpu_enable_latency_hiding_schedule"]["message"])
print(f"v4-32 has 16 chips as {'v4:2x2x4' if TPUConfig(num_chips=16).slice_name == 'v4-32' else '?'}")
