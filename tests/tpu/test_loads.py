"""Measured loads in Python: on eight devices arrays and experts move, and the model computes the same."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
from capibara.core import tpu  # noqa: E402

PROGRAM = """
import json
import numpy as np
import capibara.jax as jax, capibara.jax.numpy as jnp
from capibara import as_model, kernels
from capibara.core import tpu
draw = np.random.default_rng(0)
gate = draw.normal(size=(16, 8)).astype("float32") * 0.3
gate[:, :2] += 0.2  # the router prefers two experts of one device
params = {"layers": [{"router": gate, "up": draw.normal(size=(8, 16, 32)).astype("float32"),
                      "down": draw.normal(size=(8, 32, 16)).astype("float32")}]}
def apply(p, x):
    layer = p["layers"][0]
    return kernels.moe_feed_forward(x, layer["router"], layer["up"], layer["down"], 2)[0]
axes = {"layers.0.router": ("embed", ""), "layers.0.up": ("expert", "embed", "mlp"), "layers.0.down": ("expert", "mlp", "embed")}
model = as_model({"params": params, "apply": apply, "logical_axes": axes})
mesh = tpu.create_mesh(mesh_shape=(1, 4), axis_names=("data", "expert"))
model = tpu.shard_model(model, mesh, rules=[tpu.Rule("up|down", ("expert", None, None))])
x = jnp.abs(jnp.asarray(draw.normal(size=(256, 16)), jnp.float32))
counts = lambda m: kernels.moe_routing_kernel(x, 8, 2, gate=m.params["layers"][0]["router"]).load
config = tpu.TPUConfig(num_chips=4, mesh_shape=(1, 4))
before = tpu.tokens_by_device(counts(model), 4)
moved = tpu.reorder_experts(model, "layers.0.", tpu.balance_experts(counts(model), 4))
after = tpu.tokens_by_device(counts(moved), 4)
wide = tpu.create_mesh(mesh_shape=(2, 4), axis_names=("data", "model"))
split = tpu.reshard({"w": np.arange(64.0, dtype="float32").reshape(16, 4), "b": np.ones(3, "float32")}, wide,
                    tpu.TPUConfig(num_chips=8, mesh_shape=(2, 4)).optimize_sharding(tpu.device_load([9, 1, 1, 1, 9, 1, 1, 1], (2, 4))))
seconds = tpu.device_seconds(lambda part: part @ part.T, split.params["w"], 2)
print(json.dumps({"before": before, "after": after, "hot": config.detect_hotspots(tpu.device_load(before, (1, 4))),
    "difference": float(jnp.abs(model.apply(model.params, x) - moved.apply(moved.params, x)).max()),
    "spec": str(moved.params["layers"][0]["up"].sharding.spec), "shards": [s.data.shape for s in split.params["w"].addressable_shards],
    "same": bool((np.asarray(split.params["w"]) == np.arange(64).reshape(16, 4)).all()), "seconds": seconds}))
"""


def test_loads_of_eight_devices_move_experts_and_arrays():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                          env={**os.environ, "JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert sum(found["before"]) == sum(found["after"]) == 512
    assert found["hot"] == [[0, 0]] and max(found["after"]) < 0.8 * max(found["before"])
    assert found["difference"] < 1e-4 and "expert" in found["spec"]
    assert found["shards"] == [[2, 4]] * 8 and found["same"]
    assert len(found["seconds"]) == 8 and min(found["seconds"]) > 0


def test_loads_are_checked():
    np.testing.assert_allclose(np.asarray(tpu.device_load([3, 3], (1, 2))), [[0.8, 0.8]], rtol=1e-6)
    assert tpu.tokens_by_device(np.asarray([5, 1, 2, 2]), 2) == [6, 4]
    order = tpu.balance_experts(np.asarray([9, 8, 2, 1]), 2)
    assert sorted(order) == [0, 1, 2, 3] and {order[0], order[1]} == {0, 3}  # 9 + 1 and 8 + 2: the most balanced pairing
    for use, words in ((lambda: tpu.device_load([1], (2, 2)), "2 x 2 devices, got 1"),
                       (lambda: tpu.tokens_by_device(np.ones(3), 2), "must divide the 3 experts, got devices=2"),
                       (lambda: tpu.balance_experts(np.ones((2, 2)), 2), r"got shape \(2, 2\)"),
                       (lambda: tpu.reorder_experts({"w": np.ones((2, 2))}, "w", [0, 1]), "argument 'prefix'"),
                       (lambda: tpu.reshard({"w": np.ones((2, 2))}, 3, tpu.PartitionSpec()), "expected a Mesh")):
        with pytest.raises((TypeError, ValueError), match=words):
            use()
