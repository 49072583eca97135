"""Functions with custom_partitioning run on parts, as does the rest of their program, with the values of the unpartitioned program."""
import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

PROGRAM = """
import json
import capibara.jax as jax
from capibara.jax.experimental.custom_partitioning import custom_partitioning
jnp, lax = jax.numpy, jax.lax
P, NamedSharding, Auto = jax.sharding.PartitionSpec, jax.sharding.NamedSharding, jax.sharding.AxisType.Auto
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(Auto, Auto))
seen = []


@custom_partitioning
def same(x):
  return x


def partition(mesh, arg_shapes, result_shape):
  own = arg_shapes[0].sharding
  seen.append(str(own.spec))
  return mesh, lambda x: x, own, (own,)


same.def_partition(partition, sharding_rule="... -> ...")
image = jnp.sin(jnp.arange(2 * 16 * 8 * 3.0)).reshape(2, 16, 8, 3)
kernel = jnp.cos(jnp.arange(5 * 3 * 3 * 4.0)).reshape(5, 3, 3, 4)
NHWC = ("NHWC", "HWIO", "NHWC")
window = dict(window_dimensions=(1, 3, 2, 1), padding="SAME")
programs = {
    "same": lambda x: same(x) * 2,
    "convolution": lambda x: lax.conv_general_dilated(same(x), kernel, (1, 1), "SAME", dimension_numbers=NHWC),
    "strided convolution": lambda x: lax.conv_general_dilated(same(x), kernel, (2, 2), "SAME", dimension_numbers=NHWC),
    "dilated convolution": lambda x: lax.conv_general_dilated(same(x), kernel, (1, 1), "SAME", rhs_dilation=(2, 1),
                                                              dimension_numbers=NHWC),
    "padded to one side": lambda x: lax.conv_general_dilated(same(x), kernel, (1, 1), ((4, 0), (1, 1)), dimension_numbers=NHWC),
    "greatest": lambda x: lax.reduce_window(same(x), -jnp.inf, lax.max, window_strides=(1, 1, 1, 1), **window),
    "least": lambda x: lax.reduce_window(same(x), jnp.inf, lax.min, window_strides=(1, 1, 1, 1), **window),
    "sums": lambda x: lax.reduce_window(same(x), 0.0, lax.add, window_strides=(1, 2, 2, 1), **window),
    "wide window": lambda x: lax.reduce_window(same(x), 0.0, lax.add, (1, 11, 1, 1), (1, 1, 1, 1), "SAME"),
    "running sums": lambda x: jnp.cumsum(same(x), axis=1),
    "place of the greatest": lambda x: jnp.argmax(same(x), axis=1),
    "gradient": lambda x: jax.grad(lambda v: (lax.conv_general_dilated(v, kernel, (1, 1), "SAME", dimension_numbers=NHWC) ** 2).sum())(
        same(x)),
}
answers = {}
for name, function in programs.items():
  for spec in (P(None, "x"), P("y", "x"), P(None, ("x", "y")), P(None, "y", "x")):
    seen.clear()
    placed = jax.device_put(image, NamedSharding(mesh, spec))
    got, want = jax.jit(function)(placed), jax.jit(function)(image)
    difference = float(jnp.max(jnp.abs(got - jax.device_put(want, got.sharding)))) if got.shape == want.shape else "another shape"
    text = "" if name == "same" else jax.jit(function).lower(placed).explain_sharding()
    answers[f"{name}, {spec}"] = [difference, len(seen), sorted({line.split()[0] for line in text.splitlines()[:-1] if line})]
print(json.dumps(answers))
"""


def answers():
  environment = dict(os.environ, JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu")
  environment.pop("XLA_FLAGS", None)
  done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=600, env=environment)
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return json.loads(done.stdout.splitlines()[-1])


def test_parts_give_the_whole():
  found = answers()
  for name, (difference, asked, collectives) in found.items():
    assert asked >= 1, f"{name}: its partition was not asked"
    assert difference <= 1e-4, f"{name}: {difference}"
    if not name.startswith("gradient") and "P(None, 'y', 'x')" not in name:
      assert "all_gather" not in collectives or name.startswith("running"), f"{name}: {collectives}"
