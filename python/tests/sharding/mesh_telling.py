"""Answers of programs over eight devices: values, types, shardings, parts and errors, for both jax and capibara."""
import json
import re
import sys

if sys.argv[1] == "capibara":
  import capibara.jax
  capibara.jax.install()

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding

PROGRAMS = {}


def program(function):
  PROGRAMS[function.__name__] = function
  return function


def auto_mesh(*sizes, names=("x", "y")):
  return jax.make_mesh(sizes, names[:len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))


def explicit_mesh(*sizes, names=("x", "y")):
  return jax.make_mesh(sizes, names[:len(sizes)])


def plain(text):
  text = re.sub(r", device_kind=[^)]*?platform=\w+", "", str(text))
  return re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)


def values(tree):
  return [np.round(np.asarray(leaf, dtype=np.float64), 4).tolist() for leaf in jax.tree.leaves(tree)]


def types(tree):
  return [plain(jax.typeof(leaf)) for leaf in jax.tree.leaves(tree)]


def spec(x):
  if not isinstance(x.sharding, NamedSharding):
    return type(x.sharding).__name__
  entries = list(x.sharding.spec.partitions)
  while entries and entries[-1] is None:
    entries.pop()
  return f"{entries} {plain(x.sharding.mesh.axis_types)}"


def told(tree):
  return [values(tree), types(tree), [spec(leaf) for leaf in jax.tree.leaves(tree)]]


def shards(x):
  return [[shard.device.id, [[s.start, s.stop] for s in shard.index], shard.replica_id, np.asarray(shard.data).tolist()]
          for shard in x.addressable_shards]


def raised(function, *args, **kwargs):
  """The class of the error, and its first words."""
  try:
    function(*args, **kwargs)
  except Exception as error:  # noqa: BLE001
    kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ != "IndivisibleError")  # a private class of jax
    return [kind, " ".join(plain(error).split())[:40]]
  return ["nothing"]


def ramp(*shape, dtype=np.float32):
  return (np.arange(int(np.prod(shape))).reshape(shape) / (8 if dtype is np.float32 else 1)).astype(dtype)


def answer():
  """Prints the answers of the programs named on the command line, or of all if it names none."""
  answers = {}
  for name in sys.argv[2:] or PROGRAMS:
    try:
      answers[name] = PROGRAMS[name]()
    except Exception as error:  # noqa: BLE001
      answers[name] = ["raised", type(error).__name__, plain(error)[:300]]
  print(json.dumps(answers))
