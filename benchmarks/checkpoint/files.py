"""Times of saving and restoring beside dd and Orbax: benchmarks/checkpoint/files.py [MIB] [FOLDER], in build/venv with the extension.

The peers run in processes of their own, each on the same number of float32 arrays of 16 MiB. Rates are medians of three;
what was written is dropped from the page cache before it is read.
"""

import json
import os
import shutil
import statistics
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
begin = time.perf_counter(); saver.save(1, params=tree); returned = time.perf_counter() - begin
saver.wait(); saved = time.perf_counter() - begin
tree["w0"] = tree["w0"] + 1
begin = time.perf_counter(); saver.save(2, params=tree); saver.wait(); again = time.perf_counter() - begin
drop(folder)
begin = time.perf_counter(); saver.restore(1); restored = time.perf_counter() - begin
print(json.dumps({"returns": returned, "save": saved, "save of one changed array": again, "restore": restored}))
"""

ORBAX = """
import json, sys, time
import numpy as np, jax.numpy as jnp, orbax.checkpoint as ocp
folder, count = sys.argv[1], int(sys.argv[2])
draw = np.random.default_rng(0)
tree = {f"w{i}": jnp.asarray(draw.normal(size=(2048, 2048)).astype(np.float32)) for i in range(count)}
saver = ocp.StandardCheckpointer()
begin = time.perf_counter(); saver.save(folder + "/1", tree); returned = time.perf_counter() - begin
saver.wait_until_finished(); saved = time.perf_counter() - begin
drop(folder)
begin = time.perf_counter(); saver.restore(folder + "/1"); restored = time.perf_counter() - begin
print(json.dumps({"returns": returned, "save": saved, "restore": restored}))
"""

DROP = """
import os
def drop(folder):
    for base, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(base, name), "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
"""


def run(script, folder, count, path):
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", DROP + script, folder, str(count)], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def dd(folder, count):
    """Writing with a sync at the end, and reading it back."""
    file = f"{folder}/dd"
    begin = time.perf_counter()
    subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=16M", f"count={count}", "conv=fsync"], capture_output=True, check=True)
    written = time.perf_counter() - begin
    namespace = {}
    exec(DROP, namespace)
    namespace["drop"](folder)
    begin = time.perf_counter()
    subprocess.run(["dd", f"if={file}", "of=/dev/null", "bs=16M"], capture_output=True, check=True)
    return {"save": written, "restore": time.perf_counter() - begin}


def main():
    count = max(1, int(sys.argv[1] if len(sys.argv) > 1 else 1024) // 16)
    build = Path(os.environ.get("CAPIBARA_BUILD", Path(__file__).parents[2] / "build" / "release"))
    rows = {"dd": [], "capibara": [], "orbax": []}
    for _ in range(REPEAT):
        for name in rows:
            folder = tempfile.mkdtemp(dir=sys.argv[2] if len(sys.argv) > 2 else None)
            if name == "dd":
                rows[name].append(dd(folder, count))
            elif name == "capibara":
                rows[name].append(run(OURS, folder, count, str(build / "python")))
            else:
                rows[name].append(run(ORBAX, folder, count, ""))
            shutil.rmtree(folder)
    print(f"{count * 16} MiB in {count} arrays")
    for name, runs in rows.items():
        for what in runs[0]:
            seconds = statistics.median(run[what] for run in runs)
            rate = "" if what == "returns" else f"  {count / 64 / seconds:6.2f} GiB/s"
            print(f"{name:10} {what:26} {seconds * 1000:9.1f} ms{rate}")


if __name__ == "__main__":
    main()
