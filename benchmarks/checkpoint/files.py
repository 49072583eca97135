"""Times saving and restoring next to dd, Orbax, safetensors and torch: files.py [MIB] [FOLDER] [PEER...], in build/venv.

The peers run in their own processes, each on the same number of float32 arrays of 16 MiB; torch (asynchronous save of its distributed
checkpoints) from build/bench-venv if it is installed. Rates are from the fastest of three interleaved runs, with their share of
dd's; written files are dropped from the page cache before they are read. `written` is the share of all bytes that a save with one
changed array in ten puts on the disk. `read` is a plain read() of the files that our restore reads, in the same process just before
it: into one buffer, which shows the rate of the disk or the page cache, and into separate memory for every file, which is what a
program needs that keeps what it reads. Cold: the files are dropped from the page cache first; warm: they are in it.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEAT = 3

OURS = """
import json, sys, time
import numpy as np
import capibara.jax.numpy as jnp
from capibara.core.tpu import TPUCheckpointer
folder, count = sys.argv[1], int(sys.argv[2])
draw = np.random.default_rng(0)
tree = {f"w{i}": jnp.asarray(draw.normal(size=(2048, 2048)).astype(np.float32)) for i in range(count)}
saver = TPUCheckpointer(folder)
fresh_memory(count * 32)
begin = time.perf_counter(); saver.save(1, params=tree); returned = time.perf_counter() - begin
saver.wait(); saved = time.perf_counter() - begin
changed = max(1, count // 10)
for i in range(changed): tree[f"w{i}"] = tree[f"w{i}"] + 1
before = used(folder)
begin = time.perf_counter(); saver.save(2, params=tree); saver.wait(); again = time.perf_counter() - begin
written = (used(folder) - before) / (count * 16 * 2**20)
step = folder + "/1"
drop(folder)
cold = read_files(step, True)
drop(folder)
begin = time.perf_counter(); back = saver.restore(1); restored = time.perf_counter() - begin
warm = read_files(step, True)
del back
begin = time.perf_counter(); back = saver.restore(1); again_restored = time.perf_counter() - begin
del back
drop(folder)
print(json.dumps({"returns": returned, "save": saved, "save of one in ten": again, "written": written, "read, cold": cold,
                  "restore": restored, "read, warm": warm, "restore, warm": again_restored, "read and kept, cold": read_files(step, False),
                  "read and kept, warm": read_files(step, False)}))
"""

ORBAX = """
import json, sys, time
import numpy as np, jax.numpy as jnp, orbax.checkpoint as ocp
folder, count = sys.argv[1], int(sys.argv[2])
draw = np.random.default_rng(0)
tree = {f"w{i}": jnp.asarray(draw.normal(size=(2048, 2048)).astype(np.float32)) for i in range(count)}
saver = ocp.StandardCheckpointer()
fresh_memory(count * 32)
begin = time.perf_counter(); saver.save(folder + "/1", tree); returned = time.perf_counter() - begin
saver.wait_until_finished(); saved = time.perf_counter() - begin
drop(folder)
begin = time.perf_counter(); saver.restore(folder + "/1"); restored = time.perf_counter() - begin
print(json.dumps({"returns": returned, "save": saved, "restore": restored}))
"""

SAFETENSORS = """
import json, sys, time
import numpy as np
from safetensors.numpy import load_file, save_file
folder, count = sys.argv[1], int(sys.argv[2])
draw = np.random.default_rng(0)
tree = {f"w{i}": draw.normal(size=(2048, 2048)).astype(np.float32) for i in range(count)}
fresh_memory(count * 32)
begin = time.perf_counter(); save_file(tree, folder + "/1.safetensors"); returned = time.perf_counter() - begin
drop(folder); saved = time.perf_counter() - begin  # with the sync
begin = time.perf_counter(); load_file(folder + "/1.safetensors"); restored = time.perf_counter() - begin
print(json.dumps({"returns": returned, "save": saved, "restore": restored}))
"""

TORCH = """
import json, os, sys, time
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
folder, count = sys.argv[1], int(sys.argv[2])
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[3])
dist.init_process_group("gloo", rank=0, world_size=1)
tree = {f"w{i}": torch.randn(2048, 2048) for i in range(count)}
fresh_memory(count * 32)
begin = time.perf_counter(); future = dcp.async_save(tree, checkpoint_id=folder + "/1"); returned = time.perf_counter() - begin
future.result(); drop(folder); saved = time.perf_counter() - begin  # with the sync
begin = time.perf_counter(); dcp.load(tree, checkpoint_id=folder + "/1"); restored = time.perf_counter() - begin
print(json.dumps({"returns": returned, "save": saved, "restore": restored}))
dist.destroy_process_group()
"""

DROP = """
import os, time
def fresh_memory(mib):  # the first touch of memory that a virtual machine was not lent yet costs more than writing: the same for all
    block = bytearray(b"1") * (mib << 20)
    del block
def used(folder):
    seen = {}
    for base, _, names in os.walk(folder):
        for name in names:
            status = os.stat(os.path.join(base, name))
            seen[status.st_ino] = status.st_size  # links are counted once
    return sum(seen.values())
def read_files(folder, into_one):
    names = [os.path.join(base, name) for base, _, all_names in os.walk(folder) for name in sorted(all_names)]
    kept, one = [], bytearray(max(os.stat(name).st_size for name in names))
    begin = time.perf_counter()
    for name in names:
        with open(name, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            buffer = one if into_one else bytearray(size)
            assert file.readinto(memoryview(buffer)[:size]) == size
            if not into_one: kept.append(buffer)
    return time.perf_counter() - begin
def drop(folder):
    for base, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(base, name), "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run(script, folder, count, path, python=sys.executable):
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    words = [python, "-c", DROP + script, folder, str(count), str(free_port())]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def dd(folder, count):
    """Writing with a sync at the end, and reading it back."""
    file = f"{folder}/dd"
    namespace = {}
    exec(DROP, namespace)
    namespace["fresh_memory"](count * 32)
    begin = time.perf_counter()
    subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=16M", f"count={count}", "conv=fsync"], capture_output=True, check=True)
    written = time.perf_counter() - begin
    namespace["drop"](folder)
    begin = time.perf_counter()
    subprocess.run(["dd", f"if={file}", "of=/dev/null", "bs=16M"], capture_output=True, check=True)
    return {"save": written, "restore": time.perf_counter() - begin}


def main():
    count = max(1, int(sys.argv[1] if len(sys.argv) > 1 else 1024) // 16)
    root = Path(__file__).parents[2]
    build = Path(os.environ.get("CAPIBARA_BUILD", root / "build" / "release"))
    torch = root / "build" / "bench-venv" / "bin" / "python"
    peers = {"dd": dd, "capibara": lambda folder, count: run(OURS, folder, count, str(build / "python")),
             "orbax": lambda folder, count: run(ORBAX, folder, count, ""),
             "safetensors": lambda folder, count: run(SAFETENSORS, folder, count, "")}
    if torch.exists() and subprocess.run([torch, "-c", "import torch.distributed.checkpoint"], capture_output=True).returncode == 0:
        peers["torch"] = lambda folder, count: run(TORCH, folder, count, "", str(torch))
    else:
        print("torch is not in build/bench-venv: left out")
    chosen = ["dd", *sys.argv[3:]]
    peers = {name: peers[name] for name in peers if len(sys.argv) <= 3 or name in chosen}
    rows = {name: [] for name in peers}
    for _ in range(REPEAT):
        for name, measure in peers.items():
            folder = tempfile.mkdtemp(dir=sys.argv[2] if len(sys.argv) > 2 else None)
            os.sync()  # excludes writes still pending from other programs
            rows[name].append(measure(folder, count))
            shutil.rmtree(folder)
    print(f"{count * 16} MiB in {count} arrays")
    fastest = {name: {what: min(run[what] for run in runs) for what in runs[0]} for name, runs in rows.items()}
    for name, times in fastest.items():
        for what, seconds in times.items():
            if what == "written":
                print(f"{name:12} {what:20} {seconds:10.1%} of all bytes")
                continue
            rate = "" if what == "returns" else f"  {count / 64 / seconds:6.2f} GiB/s"
            share = f"  {fastest['dd'][what] / seconds:6.0%} of dd" if what in fastest["dd"] else ""
            read = {"restore": "read, cold", "restore, warm": "read, warm"}.get(what)
            if read in times:
                share += f"  {times[read] / seconds:6.0%} of reading"
            print(f"{name:12} {what:20} {seconds * 1000:9.1f} ms{rate}{share}")


if __name__ == "__main__":
    main()
