"""Programs over eight devices of the native CPU give jax's answers on its own eight."""
import functools
import json
import os
import subprocess
import sys

import pytest
import recording
from recording import close
from xla_cpu_plugin import needs_plugin, plugin

pytest.importorskip("capibara._core", reason="the Python extension is not built")
RECORDED = recording.recorded("shard_map_answers.json")
answers = functools.partial(recording.answers, "shard_map_programs.py")


@pytest.mark.parametrize("name", RECORDED)
def test_answers_as_jax(name):
  assert close(answers()[name], RECORDED[name])


@pytest.mark.parametrize("name", RECORDED)
def test_devices_one_by_one_answer_as_jax(name):
  """The reference backend runs devices one by one: the ground truth for the lanes."""
  assert close(answers("reference")[name], RECORDED[name])


@needs_plugin
@pytest.mark.parametrize("name", RECORDED)
def test_devices_of_a_plugin_answer_as_jax(name):
  """XLA:CPU runs the text of each program on eight devices of its own."""
  own = json.dumps(answers("xla_cpu", plugin())[name])  # a plugin's devices have other names
  for theirs, cpu in (("device_kind=xla_cpu", "device_kind=cpu"), ("xla_cpu", "cpu"), ("PluginDevice", "CpuDevice")):
    own = own.replace(theirs, cpu)
  assert close(json.loads(own), RECORDED[name])


def script(text, **environment):
  environment = dict(os.environ, JAX_PLATFORMS="cpu", **environment)
  done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env=environment)
  assert done.returncode == 0, done.stderr
  return done.stdout.strip()


def test_a_collective_under_a_predicate_that_varies_is_refused():
  text = """
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax
P = jax.sharding.PartitionSpec
mesh = jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
def body(x):
  return CALL
try:
  jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(jnp.arange(8.0))
except ValueError as error:
  print(error)
"""
  cond = "lax.cond(x.sum() > 2, lambda y: y + lax.psum(y, 'i'), lambda y: y, x)"
  loop = "lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1 + lax.psum(c, 'i'), x)"
  for call in (cond, loop):
    assert "some devices would wait for ever" in script(text.replace("CALL", call), JAX_NUM_CPU_DEVICES="8")


def test_the_flag_of_xla_says_how_many_devices_there_are():
  text = "import capibara.jax as jax; print(jax.device_count(), len(jax.make_mesh((3, 2), ('a', 'b')).devices.flat))"
  assert script(text, XLA_FLAGS="--xla_foo=1 --xla_force_host_platform_device_count=6") == "6 6"
  assert script(text, XLA_FLAGS="--xla_force_host_platform_device_count=6", JAX_NUM_CPU_DEVICES="7") == "7 6"


def test_ragged_all_to_all_moves_slices_as_its_definition_says():
  text = """
import numpy as np
import capibara.jax as jax, capibara.jax.numpy as jnp
from capibara.jax import lax
P, Auto = jax.sharding.PartitionSpec, jax.sharding.AxisType.Auto
mesh = jax.make_mesh((4,), ("i",), axis_types=(Auto,))
draw = np.random.default_rng(3)
for per in (1, 2):  # slices for each device
  count, rows, out_rows = 4 * per, 24, 40
  sizes = draw.integers(0, 4, (4, count))
  begins = draw.integers(0, rows - 4, (4, count))
  places = np.zeros((4, count), int)  # of what sender s sends to receiver r, behind what came before
  received = np.zeros((4, count), int)
  for r in range(4):
    at = 1
    for s in range(4):
      for k in range(per):
        places[s, r * per + k] = at
        received[r, s * per + k] = sizes[s, r * per + k]
        at += sizes[s, r * per + k]
  operand, output = draw.normal(size=(4, rows, 3)).astype("f"), draw.normal(size=(4, out_rows, 3)).astype("f")
  weights = draw.normal(size=output.shape).astype("f")
  expected, d_operand, d_output = output.copy(), np.zeros_like(operand), weights.copy()
  for s in range(4):
    for j in range(count):
      r, size, b, p = j // per, sizes[s, j], begins[s, j], places[s, j]
      expected[r, p:p + size] = operand[s, b:b + size]
      d_operand[s, b:b + size] += weights[r, p:p + size]
      d_output[r, p:p + size] = 0
  def local(*parts):
    return lax.ragged_all_to_all(*(part[0] for part in parts), axis_name="i")[None]
  exchange = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
  numbers = [jnp.asarray(part, jnp.int32) for part in (begins, sizes, places, received)]
  assert np.array_equal(exchange(jnp.asarray(operand), jnp.asarray(output), *numbers), expected)
  grads = jax.grad(lambda a, b: (exchange(a, b, *numbers) * weights).sum(), (0, 1))(jnp.asarray(operand), jnp.asarray(output))
  assert np.allclose(grads[0], d_operand, atol=1e-6) and np.allclose(grads[1], d_output, atol=1e-6)
try:
  jax.shard_map(lambda x: lax.ragged_all_to_all(x, x, x, x, x, x, axis_name="i"), mesh=mesh, in_specs=P("i"), out_specs=P("i"))(jnp.ones(8))
except ValueError as error:
  print(error)
print("right")
"""
  said = script(text, JAX_NUM_CPU_DEVICES="8")
  assert "ragged_all_to_all input_offsets must be integer type." in said and "right" in said, said
