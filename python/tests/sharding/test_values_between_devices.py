"""Four CPU devices: donated arrays that move, results of mapped functions, and NaN or infinite values inside shard_map."""
import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, jax, jax.numpy as jnp, numpy as np
from jax import lax, shard_map
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
devices = jax.devices()
mesh = Mesh(np.array(devices), ("x",))
answers = {}

def fresh(kind):
  x = jnp.arange(8.0) + 1
  return {"one": x, "second": jax.device_put(x, devices[1]), "split": jax.device_put(x, NamedSharding(mesh, P("x")))}[kind]

targets = {"third": devices[2], "whole": NamedSharding(mesh, P()), "split": NamedSharding(mesh, P("x")), "second": devices[1]}
for kind in ("one", "second", "split"):
  for name, target in targets.items():
    x = fresh(kind)
    y = jax.device_put(x, target, donate=True)
    answers[f"donate {kind} {name}"] = [x.is_deleted(), y.is_deleted(), y.tolist(), sorted(d.id for d in y.devices())]
    x = fresh(kind)
    y = jax.device_put(x, target)
    answers[f"keep {kind} {name}"] = [x.is_deleted(), y.is_deleted(), y.tolist(), sorted(d.id for d in y.devices())]

other = Mesh(np.array(devices), ("y",))
twice = shard_map(lambda x: x * 2, mesh=other, in_specs=P("y"), out_specs=P("y"))
rows = jnp.arange(8.0).reshape(4, 2)
placed = {"plain": rows, "split": jax.device_put(rows, NamedSharding(mesh, P("x"))),
          "whole": jax.device_put(rows, NamedSharding(mesh, P()))}
for kind, x in placed.items():
  calls = {"shard_map": twice, "jit": jax.jit(twice), "jit of more": jax.jit(lambda x: twice(x + 1) - 1), "pmap": jax.pmap(lambda x: x * 2),
           "pmap of a whole": lambda x: jax.pmap(lambda x, y: y, in_axes=(0, None))(x, placed["whole"])}
  for name, call in calls.items():
    if kind == "whole" and "pmap" in name:
      continue  # jax refuses to map what another sharding keeps whole
    y = call(x)
    answers[f"place {name} {kind}"] = [y.tolist(), [[str(part.index), part.data.tolist()] for part in y.addressable_shards]]

jax.config.update("jax_debug_nans", True)
zeros = jnp.zeros(8)
functions = {"div": lambda x: 0.0 / x, "log": lambda x: jnp.log(x - 1), "sqrt": lambda x: jnp.sqrt(x - 1),
             "sub": lambda x: lax.psum(1 / x, "x") - lax.psum(1 / x, "x")}
def seen(call):
  try:
    call()
  except FloatingPointError as error:
    return str(error)
for name, function in functions.items():
  mapped = shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P() if name == "sub" else P("x"))
  answers[f"nan {name}"] = seen(lambda: mapped(zeros))
  answers[f"nan jit {name}"] = seen(lambda: jax.jit(mapped)(zeros))
  answers[f"good {name}"] = mapped(zeros + 2).tolist()
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
  script = tmp_path_factory.mktemp("devices") / "program.py"
  script.write_text(PROGRAM)

  def run(*command):
    variables = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_NUM_CPU_DEVICES="4", JAX_PLATFORMS="cpu")
    done = subprocess.run([sys.executable, *command, str(script)], env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
  return run("-m", "capibara"), run()


def test_arrays_move_to_the_devices_that_jax_puts_them_on(answers):
  ours, theirs = answers
  for name in (name for name in theirs if name.startswith(("donate", "keep", "good"))):
    assert ours[name][1:] == theirs[name][1:], name


def test_results_are_split_by_the_mesh_of_the_map(answers):
  ours, theirs = answers
  names = [name for name in theirs if name.startswith("place")]
  assert len(names) == 13
  for name in names:
    assert ours[name] == theirs[name], name


def test_what_is_donated_to_other_devices_is_deleted(answers):
  ours, _ = answers
  for kind, same in (("one", ()), ("second", ("second",)), ("split", ("split", "whole"))):
    for target in ("third", "whole", "split", "second"):
      assert not ours[f"keep {kind} {target}"][0]
      if target not in same:
        assert ours[f"donate {kind} {target}"][0], (kind, target)


def test_bad_values_name_the_operation_inside_of_shard_map(answers):
  ours, theirs = answers
  for name in ("div", "log", "sqrt", "sub"):
    for form in (f"nan {name}", f"nan jit {name}"):
      assert theirs[form].startswith("Invalid value (nan) encountered in sharded computation")
      assert ours[form].startswith(f"Invalid value (nan) encountered in sharded computation: in {name}"), ours[form]
