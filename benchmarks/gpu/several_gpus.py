"""Training steps compiled ahead of time for several GPUs: the collectives in XLA's result next to those that our partitioner predicts.

    PYTHONPATH=build/release/python python3 benchmarks/gpu/several_gpus.py [--described] [4 8]

The models are those of python/tests/sharding/partition_bytes_programs.py, data parallel, FSDP and Megatron; bytes are those that
collectives bring to each device. Nothing runs: the CUDA plugin (jax-cuda13-pjrt, or the file in CAPIBARA_PLUGIN) compiles for a topology of
GPUs that need not exist; with --described on a machine without any, for H200s as below. Its result is read by jaxlib, in its own process.
"""

import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

COUNTS = [int(word) for word in sys.argv[1:] if word.isdigit()] or [4, 8]
H200 = """gpu_device_info {
  cuda_compute_capability { major: 9 } core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 62914560 device_memory_size: 149000000000
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 8 } device_description_str: "NVIDIA H200" """
DESCRIBED = {"target_config": H200} if "--described" in sys.argv else {}
os.environ.update(JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "sharding"))
sys.argv = [sys.argv[0], "capibara"]

import partition_bytes_programs as programs  # noqa: E402
from jax.experimental import topologies  # noqa: E402

jax = programs.jax
Auto = jax.sharding.AxisType.Auto


def lowered(mesh, loss, shapes, rule, batch):
    """Like `moved` of the programs, but only lowered, not counted."""
    place = lambda spec: jax.sharding.NamedSharding(mesh, spec)
    described = lambda shape, spec, dtype="float32": jax.ShapeDtypeStruct(shape, dtype, sharding=place(spec))
    specs = {name: rule(name, shape) for name, shape in shapes.items()}
    parameters = {name: described(shape, specs[name]) for name, shape in shapes.items()}
    inputs = [described(shape, programs.P("data"), dtype) for shape, dtype in batch]
    results = (place(programs.P()), {name: place(spec) for name, spec in specs.items()})
    return jax.jit(programs.trained(loss), out_shardings=results).lower(parameters, *inputs)


READER = """
import sys
from jax._src.lib import hlo
print(hlo.HloModule.from_serialized_hlo_module_proto(sys.stdin.buffer.read()).to_string())
"""


def text_of(compiled):
    """The HLO text; in a module with configuration, the module is the first field of a message."""
    module, form = compiled._optimized_program()
    if form == "hlo_with_config":
        size, shift, at = 0, 0, 1
        while True:
            byte, at = module[at], at + 1
            size, shift = size | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        module = module[at:at + size]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([sys.executable, "-c", READER], input=module, capture_output=True, check=True, env=environment).stdout.decode()


def members_of(attributes, devices):
    """The number of devices in a group: groups are given by members, by sizes, or by axes of a mesh."""
    if found := re.search(r"replica_groups=\{\{([\d,]*)\}", attributes):
        return len(found[1].split(","))
    if found := re.search(r"replica_groups=\[\d+,(\d+)\]", attributes):
        return int(found[1])
    if found := re.search(r"replica_groups=mesh\[([^]]*)\] \{([^}]*)\}", attributes):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", found[1]))
        return math.prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", found[2]))
    return devices


def of_result(text, devices):
    """Bytes to each device, and the number of collectives of each kind. Results of a `-start` operation may include its operands first."""
    total, kinds = 0, Counter()
    operation = r"= (\(.*\)|\S+) (" + "|".join(programs.KINDS) + r")(?:-start)?\((.*)"
    for result, kind, rest in re.findall(operation, text):
        parts = [programs.BYTES[dtype] * eval("*".join(dims.split(",")) or "1") for dtype, dims in re.findall(r"(\w+)\[([\d,]*)\]", result)]
        if result.startswith("(("):
            parts = parts[len(parts) // 2:]
        total += programs.KINDS[kind](sum(parts), members_of(rest, devices))
        kinds[kind] += 1
    return round(total), dict(kinds)


def main():
    for devices in COUNTS:
        topology = topologies.get_topology_desc(f"1x1x{devices}", platform="cuda", **DESCRIBED)
        for strategy in ("dp", "fsdp", "megatron"):
            flat = strategy != "megatron"
            sizes, names = ((devices,), ("data",)) if flat else ((devices // 2, 2), ("data", "model"))
            rule = programs.STRATEGIES[strategy][1]
            here = jax.make_mesh(sizes, names, axis_types=(Auto,) * len(names), devices=jax.devices()[:devices])
            there = topologies.make_mesh(topology, sizes, names)
            predicted = lowered(here, *programs.MODELS["gpt"][:2], rule, programs.GPT_BATCH)._inserted_collectives()
            kinds = Counter(row[0] for row in predicted)
            total = round(sum(row[2] * row[3] for row in predicted))
            compiled = lowered(there, *programs.MODELS["gpt"][:2], rule, programs.GPT_BATCH).compile()
            found, of_kinds = of_result(text_of(compiled), devices)
            print(f"GPT {strategy}, {devices} GPUs: predicted {total:,} bytes ({dict(kinds)}), compiled {found:,} ({of_kinds})", flush=True)


if __name__ == "__main__":
    main()
