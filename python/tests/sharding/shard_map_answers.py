"""Shared by programs over eight devices of one process: meshes, operands, and the form of answers."""
import re
import sys

if sys.argv[1] == "capibara":
  import capibara.jax
  capibara.jax.install()

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
LINE = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
X = jnp.arange(32.0).reshape(8, 4) / 8
W = jnp.sin(jnp.arange(12.0)).reshape(4, 3)
PROGRAMS = {}


def program(function):
  PROGRAMS[function.__name__] = function
  return function


def mapped(function, in_specs, out_specs, **options):
  options.setdefault("mesh", MESH)
  return jax.shard_map(function, in_specs=in_specs, out_specs=out_specs, **options)


def values(tree):
  return [np.round(np.asarray(leaf, dtype=np.float64), 4).tolist() for leaf in jax.tree.leaves(tree)]


def spec(array):
  return str(array.sharding.spec) if isinstance(array.sharding, NamedSharding) else "single"


def text(function, *args):
  """The program's text, with sets in sorted order."""
  found = str(jax.make_jaxpr(function)(*args))
  ordered = re.sub(r"frozenset\(\{([^}]*)\}\)", lambda match: "frozenset({" + ", ".join(sorted(match[1].split(", "))) + "})", found)
  return ordered.splitlines()


def whole(function, *args):
  """Values eagerly and compiled, placement of the results, and the text."""
  eager, compiled = function(*args), jax.jit(function)(*args)
  return [values(eager), values(compiled), [spec(leaf) for leaf in jax.tree.leaves(compiled)], text(function, *args)]


def raised(function, *args, length=300):
  """The error raised by tracing it: eagerly, jax's message names an internal function."""
  try:
    jax.make_jaxpr(function)(*args) if args else function()
  except Exception as error:
    kinds = (NotImplementedError, NameError, ValueError, TypeError, RuntimeError, Exception)
    kind = next(kind for kind in kinds if isinstance(error, kind))
    return [kind.__name__, re.sub(r"frozenset\(.*?\)", "set", str(error))[:length]]
  return "nothing was raised"


def both(function, in_specs, out_specs, *args, **options):
  """With and without varying types (check_vma)."""
  return [whole(mapped(function, in_specs, out_specs, check_vma=check, **options), *args) for check in (True, False)]


ROWS, CELLS = P("data"), P("data", "model")
