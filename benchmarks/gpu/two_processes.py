"""Two processes on one GPU: both see two devices; a sum over them, which NCCL rejects on one card, is an error in both.

    PYTHONPATH=build/release/python python3 benchmarks/gpu/two_processes.py [--library capibara|jax] [--seconds 120]

Prints what each process saw, and how long it took. NCCL 2.30 and later computes the sum if NCCL_MULTI_RANK_GPU_ENABLE=1 is set.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

PROGRAM = """
import importlib, os, time
jax = importlib.import_module("capibara.jax" if os.environ["LIBRARY"] == "capibara" else "jax")
number = int(os.environ["NUMBER"])
jax.distributed.initialize(os.environ["ADDRESS"], num_processes=2, process_id=number)
print("devices", len(jax.devices()), "local", len(jax.local_devices()), flush=True)
import numpy
spec, mesh = jax.sharding.PartitionSpec, jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
part = numpy.full(1024, number + 1.0, numpy.float32)
started = time.perf_counter()
try:
    own = jax.device_put(part, jax.local_devices()[0])
    x = jax.make_array_from_single_device_arrays((2048,), jax.sharding.NamedSharding(mesh, spec("x")), [own])
    total = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=spec("x"), out_specs=spec()))(x)
    print("sum", numpy.asarray(total.addressable_shards[0].data)[0], flush=True)
except Exception as error:
    print(f"{type(error).__name__} after {time.perf_counter() - started:.1f} s:", " ".join(str(error).split())[:600], flush=True)
os._exit(0)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="capibara", choices=("capibara", "jax"))
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
    environment = dict(os.environ, LIBRARY=options.library, ADDRESS=address, JAX_PLATFORMS="cuda", XLA_PYTHON_CLIENT_PREALLOCATE="false",
                       XLA_PYTHON_CLIENT_MEM_FRACTION="0.1")
    started = time.monotonic()
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM], env=dict(environment, NUMBER=str(number)), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for number in range(2)]
    for number, process in enumerate(processes):
        try:
            said = process.communicate(timeout=max(1, options.seconds - (time.monotonic() - started)))[0]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0] + f"\nno end after {options.seconds:g} s"
        lines = said.splitlines()
        kept = [line for line in lines if line.startswith(("devices", "sum", "no end")) or " after " in line] or lines[-3:]
        print(f"process {number}: " + "; ".join(kept), flush=True)
    print(f"{time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
