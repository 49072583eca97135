"""The partitioner's collectives bring no more bytes to a device than those in XLA's result, and state their reason."""
import functools
import os
import subprocess
import sys

import pytest
import recording

pytest.importorskip("capibara._core", reason="the Python extension is not built")
RECORDED = recording.recorded("partition_bytes_answers.json")
bytes_moved = functools.partial(recording.answers, "partition_bytes_programs.py")


@pytest.mark.parametrize("name", RECORDED)
def test_bytes_are_at_most_those_of_xla(name):
  assert bytes_moved()[name] <= 1.1 * RECORDED[name]


def test_each_collective_is_explained():
  text = """
import capibara.jax as jax
P, Auto = jax.sharding.PartitionSpec, jax.sharding.AxisType.Auto
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(Auto, Auto))
shaped = lambda shape, spec: jax.ShapeDtypeStruct(shape, "float32", sharding=jax.sharding.NamedSharding(mesh, spec))
print(jax.jit(lambda x, w: x @ w).lower(shaped((16, 64), P("data", "model")), shaped((64, 8), P("model"))).explain_sharding())
"""
  environment = dict(os.environ, JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu")
  environment.pop("XLA_FLAGS", None)
  done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600, env=environment)
  assert done.returncode == 0, done.stderr[-4000:]
  said = done.stdout
  assert "psum over model of float32[4,8]: 128 bytes" in said and "each device has a part of what dot_general combines" in said, said
  assert "1 collective, 128 bytes to each device" in said
