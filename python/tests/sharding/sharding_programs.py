"""Programs over several devices, each returning what jax and capibara must agree on; run by name, prints one JSON object.

python sharding_programs.py jax|capibara
"""
import json
import sys

if sys.argv[1] == "capibara":
  import capibara.jax
  capibara.jax.install()

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = jnp.arange(32.0).reshape(8, 4)


def lies(*spec):
  return NamedSharding(MESH, P(*spec))


def told(array):
  """The values, their sharding, and every shard."""
  return [np.asarray(array).tolist(), str(array.sharding.spec) if hasattr(array.sharding, "spec") else "single",
          sorted(device.id for device in array.sharding.device_set),
          [[shard.device.id, str(shard.index), shard.replica_id, np.asarray(shard.data).tolist()] for shard in array.addressable_shards]]


def error(function, *args):
  try:
    function(*args)
  except Exception as raised:
    kinds = [kind.__name__ for kind in (ValueError, TypeError, RuntimeError, Exception) if isinstance(raised, kind)]
    return [kinds[0], str(raised)[:40]]
  return "nothing was raised"


def devices():
  return [len(jax.devices()), jax.device_count(), jax.local_device_count(), [d.id for d in jax.devices()], jax.process_count(), jax.process_index()]


def meshes():
  grid = Mesh(np.array(jax.devices()[:6]).reshape(3, 2), ("a", "b"))
  return [str(MESH), repr(MESH), MESH.shape_tuple, MESH.size, str(grid), grid.device_ids.tolist(), MESH == jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2),
          str(P("x", None)), str(P(("x", "y"))), str(P()), str(P("x") + P("y")), P("x") == P("x", None), len(P("x", "y")), repr(lies("x")),
          lies("x", None).is_equivalent_to(lies("x"), 2), lies("x", None) == lies("x"), lies().is_fully_replicated, lies("y").num_devices]


def placed():
  return [told(jax.device_put(X, one)) for one in (lies("x"), lies("x", "y"), lies(None, "y"), lies(("x", "y")), lies(("y", "x")), lies(), jax.devices()[3])]


def moved_between_shardings():
  a = jax.device_put(X, lies("x"))
  return [told(jax.device_put(a, lies(None, "x"))), told(jax.device_put(a, jax.devices()[5]))]


def indices():
  return [str(lies("x", "y").devices_indices_map((8, 4))), lies("x", "y").shard_shape((8, 4)), str(lies("y").addressable_devices_indices_map((8, 4)))]


def operations():
  a = jax.device_put(X, lies("x"))
  b = jax.device_put(X, lies("x", "y"))
  return [told(a + 1), told(a + a), told(a.sum()), told(a.sum(0)), told(a.T), told(b * 2), told(a[0]), told(jnp.sin(b))]


def jitted():
  a, b = jax.device_put(X, lies("x")), jax.device_put(X, lies(None, "y"))
  f = jax.jit(lambda v, w: (v @ w.T, (v * w).sum(1), v + 1))
  return [told(one) for one in jax.jit(lambda v: (v * 2, v.sum(0), v.sum()), out_shardings=(None, lies("y"), None))(a)] + [
      np.asarray(one).tolist() for one in f(a, b)]


def input_shardings():
  f = jax.jit(lambda v, w: v * w, in_shardings=(lies("x"), None), out_shardings=lies("y"))
  return [told(f(np.asarray(X), 2.0)), told(jax.jit(lambda v: v + 1, in_shardings=lies("x", "y"), out_shardings=lies("x", "y"))(X))]


def trees_of_shardings():
  f = jax.jit(lambda d: {"sum": d["a"] + d["b"], "a": d["a"]}, in_shardings=({"a": lies("x"), "b": None},), out_shardings={"sum": lies("y"), "a": lies("x")})
  out = f({"a": X, "b": X * 2})
  return [told(out["sum"]), told(out["a"])]


def static_arguments():
  f = jax.jit(lambda n, v: v * n, static_argnums=0, in_shardings=lies("x"), out_shardings=lies("x"))
  return told(f(3, X))


def constraints():
  @jax.jit
  def f(v):
    return jax.lax.with_sharding_constraint(v @ v.T, lies("x", "y")) + 1

  with MESH:
    g = told(jax.jit(lambda v: jax.lax.with_sharding_constraint(v * 2, P("y")))(X))
  return [told(f(X)), g, told(jax.lax.with_sharding_constraint(X, lies("x")))]


def constraints_in_programs():
  f = lambda v: jax.lax.with_sharding_constraint(v * v, lies("x", None))
  mapped = lambda v: jax.lax.with_sharding_constraint(v * 2, lies("x"))
  both = jax.jvp(f, (X,), (X,))
  return [str(jax.make_jaxpr(f)(X)), told(both[0]), told(both[1]), np.asarray(jax.grad(lambda v: f(v).sum())(X)).tolist(), told(jax.jit(jax.vmap(mapped, in_axes=1))(X))]


def derivatives():
  a = jax.device_put(X, lies("x"))
  loss = lambda w, v: (jnp.tanh(jax.lax.with_sharding_constraint(v @ w, lies("x"))) ** 2).sum()
  w = jnp.ones((4, 3)) * 0.01
  value, gradient = jax.jit(jax.value_and_grad(loss))(w, a)
  return [round(float(value), 4), np.round(np.asarray(gradient), 4).tolist(), told(jax.vmap(lambda r: r * 2)(a))]


def loops():
  a = jax.device_put(X, lies("x"))
  f = jax.jit(lambda v: jax.lax.fori_loop(0, 5, lambda i, c: c + c.sum(0) * 0.01, v))
  g = jax.jit(lambda v: jax.lax.scan(lambda c, r: (c + r.sum(), c), 0.0, v))
  return [np.round(np.asarray(f(a)), 4).tolist(), np.asarray(g(a)[0]).tolist(), np.asarray(g(a)[1]).tolist()]


def donated():
  a = jax.device_put(X, lies("x"))
  b = jax.jit(lambda v: v * 3, donate_argnums=0)(a)
  return [told(b), a.is_deleted()]


def random_numbers():
  draw = jax.jit(lambda k: jax.random.normal(k, (8, 4)), out_shardings=lies("x"))
  return np.round(np.asarray(draw(jax.random.key(3))), 4).tolist()


def assembled():
  a = jax.make_array_from_callback((8, 4), lies("x", "y"), lambda index: np.asarray(X)[index])
  parts = [jax.device_put(X[2 * (i // 2):2 * (i // 2) + 2], d) for i, d in enumerate(jax.devices())]
  return [told(a), told(jax.make_array_from_single_device_arrays((8, 4), lies("x"), parts))]


def single_devices():
  a = jax.device_put(X, jax.devices()[3])
  f = jax.jit(lambda v: v + 1)
  return [told(f(a)), told(a * 2), a.committed, X.committed, (a + 1).committed, f(X).committed, str(SingleDeviceSharding(jax.devices()[1]).num_devices)]


def memories():
  kinds = [memory.kind for memory in jax.devices()[0].addressable_memories()]
  host = lies("x").with_memory_kind("pinned_host")
  a = jax.device_put(X, host)
  return [kinds, jax.devices()[0].default_memory().kind, a.sharding.memory_kind, np.asarray(a).tolist(), lies("x").memory_kind,
          jax.device_put(X, SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")).sharding.memory_kind,
          jax.device_put(a, lies("x")).sharding.memory_kind]


def errors():
  a = jax.device_put(X, lies("x"))
  return [error(lambda: a + jax.device_put(X, jax.devices()[3])), error(jax.jit(lambda v: v, in_shardings=lies(None, "y")), a),
          error(jax.device_put, jnp.arange(7.0), lies("x"))[0], error(jax.device_put, jnp.arange(8.0), lies("x", "y")), error(lies, "z"),
          error(lies, "x", "x")[0], error(jax.make_mesh, (3, 3), ("x", "y")), error(jax.jit(lambda v, w: v, in_shardings=(lies("x"),)), X, X),
          error(lambda: jax.jit(lambda v: v, in_shardings=lies("x"))(v=X)), error(jax.lax.with_sharding_constraint, X, P("x")),
          error(lambda: Mesh(np.array(jax.devices()), ("x", "y")))]


def guards():
  a = jax.device_put(X, lies("x"))
  seen = []
  for level in ("allow", "disallow", "disallow_explicit"):
    with jax.transfer_guard(level):
      for action in (lambda: jax.jit(lambda v: v + 1)(np.ones(3)), lambda: a + a, lambda: jax.device_put(np.ones(8), lies("x"))):
        try:
          action()
          seen.append("done")
        except RuntimeError as raised:
          seen.append(str(raised).split(" transfer")[0])
  seen.append(error(lambda: jax.transfer_guard("never").__enter__())[0])
  return seen


def analysis():
  a = jax.device_put(X, lies("x"))
  compiled = jax.jit(lambda v: v @ v.T).lower(jnp.ones((64, 64))).compile()
  spread = jax.jit(lambda v: v + 1).lower(a).compile()
  described = jax.jit(lambda v: v + 1).lower(jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=lies("x"))).compile()
  memory = compiled.memory_analysis()
  return [compiled.cost_analysis()["flops"], memory.argument_size_in_bytes, memory.output_size_in_bytes, spread.memory_analysis().argument_size_in_bytes,
          str(spread.input_shardings), str(spread.output_shardings), str(described.output_shardings), told(spread(a))]


def texts():
  """Shardy attributes in the text, for arguments, results and constraints."""
  a = jax.device_put(X, lies("x"))

  @jax.jit
  def f(v):
    return jax.lax.with_sharding_constraint(v.T, lies(None, P.UNCONSTRAINED)) + 1

  import re
  found = []
  for text in (f.lower(a).as_text(), jax.jit(lambda v, w: v + w, in_shardings=(lies(("x", "y")), lies()), out_shardings=lies("x", "y")).lower(X, X).as_text()):
    found.append(re.findall(r"mhlo.num_partitions = \d+ : i32|sdy.mesh @mesh = <[^>]*>|sdy.sharding = #sdy.sharding<[^>]*>|sdy.sharding_constraint %\d+ <[^>]*>", text))
  return [[re.sub(r"%\d+", "%", one) for one in list_of] for list_of in found]


if __name__ == "__main__":
  answers = {}
  for name, function in list(globals().items()):
    if callable(function) and getattr(function, "__module__", "") == "__main__" and name not in ("lies", "told", "error"):
      try:
        answers[name] = function()
      except Exception as raised:
        import traceback
        answers[name] = "".join(traceback.format_exception(raised))
  print(json.dumps(answers))
