"""Orbax, tensorstore and zarr read capibara's checkpoints bit by bit, and capibara reads Orbax's."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("orbax.checkpoint", reason="orbax-checkpoint is not installed")
pytest.importorskip("tensorstore", reason="tensorstore is not installed")

PEER = Path(__file__).with_name("orbax_peer.py")
BUILD = Path(os.environ["CAPIBARA_BUILD"])

# The script of the other side: arrays from the same function, saved or read by capibara.
CAPIBARA = """
import sys, types
sys.path.insert(0, sys.argv[1])
import numpy as np, ml_dtypes
numbers = types.ModuleType("peer")
source = open(sys.argv[2]).read().split("def same")[0].replace("import orbax.checkpoint as ocp", "").replace("import tensorstore as ts", "")
source = source.replace("import jax\\n", "").replace("import jax.numpy as jnp", "import capibara.jax.numpy as jnp")
exec(source, numbers.__dict__)
from capibara.core.tpu import TPUCheckpointer
from capibara.operate.checkpointer import read_checkpoint
from capibara.jax import tree
def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes(), (a.shape, b.shape, a.dtype, b.dtype)
"""


def peer(verb, folder, devices=1):
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run([sys.executable, PEER, verb, folder], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def capibara(code, folder):
    done = subprocess.run([sys.executable, "-c", CAPIBARA + code, BUILD / "python", PEER, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    capibara("""
saver = TPUCheckpointer(sys.argv[3], async_checkpointing=False, chunk_bytes=65536)
saver.save(3, params=numbers.tree(), metadata={"loss": 0.5})
""", folder)
    return folder


def test_orbax_and_tensorstore_read_ours(saved):
    said = peer("read", saved)
    ways = "PyTreeCheckpointer", "StandardCheckpointer", "StandardCheckpointer with a target", "CheckpointManager", "tensorstore"
    assert said.splitlines() == [f"read by {how}" for how in ways]


@pytest.mark.skipif(importlib.util.find_spec("zarr") is None, reason="zarr is not installed")
def test_zarr_reads_ours(saved):
    assert peer("read_zarr", saved) == "read by zarr\n"


def test_ours_read_orbax(tmp_path):
    peer("write", tmp_path)
    said = capibara("""
expected = numbers.tree()
expected["arrays"] = {name: array for name, array in expected["arrays"].items() if array.size > 0}
for layout in ("ocdbt0_zarr2", "ocdbt0_zarr3", "ocdbt1_zarr2", "ocdbt1_zarr3"):
    got = read_checkpoint(f"{sys.argv[3]}/{layout}")["default"]
    for name, array in got["arrays"].items(): same(expected["arrays"][name], array)
    assert len(got["arrays"]) == len(expected["arrays"]) - (0 if layout.endswith("3") else 9), len(got["arrays"])
    for path in (lambda t: t["layers"][1]["w"], lambda t: t["pair"][0], lambda t: t["large"]): same(path(expected), path(got))
    assert got["nothing"] is None and isinstance(got["layers"], list)
manager = TPUCheckpointer(f"{sys.argv[3]}/manager")
assert manager.all_steps() == [7]
got = manager.restore(7, like={"params": expected})
for a, b in zip(tree.leaves(expected), tree.leaves(got["params"])): same(a, b)
assert isinstance(got["params"]["pair"], tuple)
print("read")
""", tmp_path)
    assert said == "read\n"


@pytest.mark.long
def test_the_newer_interface_of_orbax_both_ways(saved, tmp_path):
    assert peer("read_v1", saved) == "read by v1\n"
    peer("write_v1", tmp_path)
    said = capibara("""
expected = numbers.tree()
expected["arrays"] = {name: array for name, array in expected["arrays"].items() if array.size > 0}
(got,) = read_checkpoint(f"{sys.argv[3]}/v1").values()
assert sorted(got["arrays"]) == sorted(expected["arrays"])
for a, b in zip(tree.leaves(expected), tree.leaves(got)): same(a, b)
print("read")
""", tmp_path)
    assert said == "read\n"


def test_ours_read_arrays_that_orbax_saved_on_eight_devices(tmp_path):
    peer("write_sharded", tmp_path, devices=8)
    said = capibara("""
for layout in ("sharded0", "sharded1"):
    same(numbers.tree()["large"], read_checkpoint(f"{sys.argv[3]}/{layout}")["default"]["large"])
print("read")
""", tmp_path)
    assert said == "read\n"


def test_damage_to_the_nodes_of_orbax_is_told(tmp_path):
    peer("write_sharded", tmp_path, devices=8)
    said = capibara("""
from capibara._errors import CheckpointError
manifest = f"{sys.argv[3]}/sharded1/manifest.ocdbt"
whole = open(manifest, "rb").read()
found = 0
for at in range(len(whole)):
    open(manifest, "wb").write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    try: read_checkpoint(f"{sys.argv[3]}/sharded1")
    except CheckpointError as error: found += "manifest.ocdbt" in str(error)
print(found == len(whole))
""", tmp_path)
    assert said == "True\n"
