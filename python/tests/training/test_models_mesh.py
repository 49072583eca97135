"""Named models on a mesh: the shardings of propose_shardings give the same outputs and gradients, and each device holds less."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

PROGRAM = """
import numpy as np
import capibara.jax as jax
import capibara.mithril as ml
from capibara.mithril.models import Linear, Model, Relu

def network():
    model = Model()
    model |= Linear(64)(input="x", weight="w1", bias="b1", output="h")
    model |= Relu()(input="h", output="r")
    model |= Linear(32)(input="r", weight="w2", bias="b2", output="y")
    return model

settings = {"shapes": {"x": [8, 16]}, "data_keys": {"x"}}
alone = ml.compile(network(), ml.JaxBackend(), **settings)
params = alone.randomize_params(seed=1)
x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
wanted, gradients = alone.evaluate(params, {"x": x}, output_gradients={"y": np.ones((8, 32), np.float32)})

compiled = ml.compile(network(), ml.JaxBackend(device_mesh=(2, 2)), **settings)
proposed = compiled.propose_shardings()
assert set(proposed) >= {"x", "w1", "b1", "w2", "b2"}, proposed
mesh = jax.make_mesh((2, 2), ("a", "b"), (jax.sharding.AxisType.Auto,) * 2)

def place(key, value):
    names = [None if axis is None else mesh.axis_names[axis] for axis in proposed[key]]
    return jax.device_put(value, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names)))

placed = {key: place(key, value) for key, value in params.items()}
found, found_gradients = compiled.evaluate(placed, {"x": place("x", x)}, output_gradients={"y": jax.numpy.ones((8, 32))})
np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-5, atol=1e-5)
for key, value in gradients.items():
    np.testing.assert_allclose(found_gradients[key], value, rtol=1e-5, atol=1e-4, err_msg=key)
whole = sum(value.nbytes for value in params.values())
held = sum(value.addressable_shards[0].data.nbytes for value in placed.values())
assert proposed["x"][0] == 0, proposed
assert held <= 0.6 * whole, (held, whole, proposed)
print("as alone")
"""


def test_proposed_shardings_change_memory_not_values():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "as alone", done.stderr[-3000:]
