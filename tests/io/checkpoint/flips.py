"""Flipped bits in every kind of file: tests/io/checkpoint/flips.py [FLIPS], how capibara and Orbax react for their own steps.

Each flip is made in a copy of a step, which is then restored. Told: an error. Harmless: no error, and the saved arrays.
Silent: no error, and wrong numbers.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

FLIPS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1000
BUILD = Path(os.environ.get("CAPIBARA_BUILD", Path(__file__).parents[3] / "build" / "release"))

# Kinds of files by name; the others are data.
KINDS = {"capibara.json": "manifest", "zarr.json": "description", "_CHECKPOINT_METADATA": "metadata", "_METADATA": "metadata",
         "_sharding": "metadata", "manifest.ocdbt": "OCDBT manifest", "array_metadatas": "metadata"}


def kind(path):
    return next((what for name, what in KINDS.items() if name in path.parts), "data")


def tree(numpy):
    draw = numpy.random.default_rng(0)
    return {"w": draw.normal(size=(256, 128)).astype("float32"), "b": draw.normal(size=(300,)).astype("float32"),
            "n": draw.integers(0, 9, (7,)).astype("int32")}


def count(folder, saved, restore, numpy):
    """{kind: [told, harmless, silent]} for flips spread evenly over the kinds of files."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.stat().st_size)
    by_kind = {}
    for path in files:
        by_kind.setdefault(kind(path), []).append(path)
    draw, counts = random.Random(1), {what: [0, 0, 0] for what in by_kind}
    for i in range(FLIPS):
        what = sorted(by_kind)[i % len(by_kind)]
        path = draw.choice(by_kind[what])
        whole = path.read_bytes()
        at = draw.randrange(8 * len(whole))
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        os.unlink(path)  # it may be a link to another step's file
        path.write_bytes(changed)
        try:
            got = restore()
            same = sorted(got) == sorted(saved) and all(numpy.asarray(got[name]).tobytes() == saved[name].tobytes() and
                                                        numpy.asarray(got[name]).dtype == saved[name].dtype for name in saved)
            counts[what][1 if same else 2] += 1
        except Exception:
            counts[what][0] += 1
        path.write_bytes(whole)
    return counts


def ours(folder):
    sys.path.insert(0, str(BUILD / "python"))
    import numpy
    from capibara.core.tpu import TPUCheckpointer
    saver = TPUCheckpointer(folder, async_checkpointing=False, chunk_bytes=16384)
    saved = tree(numpy)
    saver.save(1, params=saved)
    return count(f"{folder}/1", saved, lambda: saver.restore(1)["params"], numpy)


def orbax(folder):
    import jax
    import numpy
    import orbax.checkpoint as ocp
    saver = ocp.StandardCheckpointer()
    saved = tree(numpy)
    saver.save(f"{folder}/1", jax.tree.map(jax.numpy.asarray, saved))
    saver.wait_until_finished()
    return count(f"{folder}/1", saved, lambda: saver.restore(f"{folder}/1"), numpy)


def main():
    for name in ("capibara", "orbax"):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "JAX_PLATFORMS": "cpu", "FLIPS_OF": name}
            done = subprocess.run([sys.executable, __file__, str(FLIPS), folder], capture_output=True, text=True, env=environment)
            if done.returncode != 0:
                sys.exit(done.stderr[-2000:])
            counts = json.loads(done.stdout.splitlines()[-1])
        total = [sum(one[i] for one in counts.values()) for i in range(3)]
        for what, (told, harmless, silent) in [*counts.items(), ("all", total)]:
            print(f"{name:9} {what:15} told {told:5}  harmless {harmless:5}  silent {silent:5}")


if __name__ == "__main__":
    if "FLIPS_OF" in os.environ:
        print(json.dumps({"capibara": ours, "orbax": orbax}[os.environ["FLIPS_OF"]](sys.argv[2])))
    else:
        main()
