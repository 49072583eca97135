"""Programs of pmap, placed arrays and meshes, run by shard_map_programs.py."""
from shard_map_answers import CELLS, MESH, ROWS, W, X, mapped, program, raised, spec, values

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


@program
def pmap_psum():
  f = jax.pmap(lambda x: lax.psum(x, "i"), "i")
  return [values(f(X)), values(jax.pmap(lambda x: x / lax.pmean(x + 1, "i"), "i")(X))]


@program
def pmap_axes():
  f = jax.pmap(lambda a, b: a * b + lax.axis_index("k"), "k", in_axes=(0, None), out_axes=1)
  return values(f(X, jnp.float32(2.0)))


@program
def pmap_of_trees_and_static_arguments():
  f = jax.pmap(lambda t, n: {"s": t["x"] * n}, static_broadcasted_argnums=1)
  return values(f({"x": X}, 3))


@program
def pmap_derivative():
  f = jax.pmap(lambda x: lax.psum(jnp.sin(x).sum(), "i"), "i")
  return values(jax.grad(lambda x: f(x).sum())(X))


@program
def pmap_placement():
  y = jax.pmap(lambda x: x + 1, "i")(X)
  return [spec(y), y.sharding.num_devices, y.shape]


@program
def pmap_needs_devices():
  return raised(jax.pmap(lambda x: x), jnp.ones((9, 2)))[0]


@program
def placed_arrays():
  a = jax.device_put(X, NamedSharding(MESH, CELLS))
  return [str(a.sharding), [[s.device.id, str(s.index), s.replica_id, np.asarray(s.data).tolist()] for s in a.addressable_shards],
          a.is_fully_addressable, a.is_fully_replicated, len(a.devices()), a.addressable_data(3).tolist(), a.committed]


@program
def replicated_arrays():
  a = jax.device_put(X, NamedSharding(MESH, P(None, "model")))
  everywhere = jax.device_put(X, NamedSharding(MESH, P()))
  return [[[s.device.id, str(s.index), s.replica_id] for s in a.addressable_shards], str(everywhere.is_fully_replicated)]


@program
def operations_on_placed_arrays():
  a = jax.device_put(X, NamedSharding(MESH, CELLS))
  results = [a + 1, a * a, a @ a.T, a.T, a.sum(), a.sum(0), a.sum(1), jnp.sin(a) + a[:, :1], a.astype(jnp.int32), jnp.where(a > 1, a, 0),
             a.reshape(8, 2, 2).sum(2)]
  return [[values(r)[0], spec(r)] for r in results[:10]] + [values(results[10])]


@program
def jitted_operations_on_placed_arrays():
  a = jax.device_put(X, NamedSharding(MESH, CELLS))
  w = jax.device_put(W, NamedSharding(MESH, P("model")))
  f = jax.jit(lambda x, v: (jnp.tanh(x @ v), x.sum(), x.T, x + 1))
  return [[values(r)[0], spec(r)] for r in f(a, w)]


@program
def in_and_out_shardings():
  rows = NamedSharding(MESH, ROWS)
  f = jax.jit(lambda x: x * 2, in_shardings=rows, out_shardings=NamedSharding(MESH, P(None, "model")))
  y = f(X)
  return [values(y), spec(y)]


@program
def constraint():
  f = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(MESH, P("model"))))
  return [values(f(X)), spec(f(X)), spec(lax.with_sharding_constraint(X, NamedSharding(MESH, P("model"))))]


@program
def single_devices():
  a = jax.device_put(X, jax.devices()[3])
  b = a * 2
  return [str(a.sharding), str(b.sharding), str(jax.jit(jnp.sin)(a).sharding), [d.id for d in b.devices()]]


@program
def different_devices():
  return raised(lambda: jax.device_put(X, jax.devices()[1]) + jax.device_put(X, jax.devices()[2]))[0]


@program
def from_callback():
  sharding = NamedSharding(MESH, CELLS)
  a = jax.make_array_from_callback((8, 4), sharding, lambda index: np.asarray(X)[index])
  return [values(a), str(a.sharding.spec)]


@program
def from_single_device_arrays():
  sharding = NamedSharding(MESH, ROWS)
  parts = [jax.device_put(np.asarray(X)[index], device) for device, index in sharding.addressable_devices_indices_map((8, 4)).items()]
  a = jax.make_array_from_single_device_arrays((8, 4), sharding, parts)
  return [values(a), str(a.sharding.spec)]


@program
def from_process_local_data():
  a = jax.make_array_from_process_local_data(NamedSharding(MESH, ROWS), np.asarray(X))
  return [values(a), str(a.sharding.spec), a.shape]


@program
def meshes():
  mesh = jax.make_mesh((4, 2), ("x", "y"))
  other = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
  return [repr(mesh), str(mesh), str(other), mesh.shape_tuple, mesh.axis_types[0].name, mesh.device_ids.tolist(), str(mesh.abstract_mesh),
          mesh == other, mesh.size, mesh.explicit_axes, other.auto_axes, mesh.are_all_axes_explicit, str(other.devices[1, 2])]


@program
def abstract_meshes():
  plain = jax.sharding.AbstractMesh((2, 3), ("x", "y"))
  with jax.set_mesh(MESH):
    inside = [str(jax.sharding.get_abstract_mesh()), str(jax.sharding.get_mesh())]
  seen = []
  mapped(lambda x: seen.append(str(jax.sharding.get_abstract_mesh())) or x, CELLS, CELLS)(X)
  return [str(plain), repr(plain), str(jax.sharding.get_abstract_mesh()), inside, seen[0]]


@program
def specifications():
  return [repr(P("x", unreduced={"y"})), repr(P(None, reduced={"x"})), repr(P(("x", "y"))), repr(P("x")), repr(P()), repr(P(("x",))),
          repr(P("x", "y") + P("z")), P("x") == ("x",), repr(P(P.UNCONSTRAINED)), repr(P(unreduced={"x"})),
          str(NamedSharding(MESH, P("data"))), P("x", None) == P("x"), len(P("x", None))]


@program
def mesh_utilities():
  from jax.experimental import mesh_utils
  return [[device.id for device in mesh_utils.create_device_mesh((2, 4)).flat], mesh_utils.create_device_mesh((2, 2, 2)).shape]


@program
def errors_of_arguments():
  return [raised(mapped(lambda x: x, P("data", "model", "model"), P()), X), raised(mapped(lambda x: x, P("z"), P()), X),
          raised(mapped(lambda x: x, ROWS, ROWS), jnp.ones(3)), raised(mapped(lambda x: x, CELLS, P("z")), X)]


@program
def errors_of_results():
  return [raised(mapped(lambda x: x, CELLS, P()), X), raised(mapped(lambda x: x.sum(), CELLS, CELLS), X)]


@program
def errors_of_placement():
  return [raised(lambda: jax.device_put(jnp.ones((3, 4)), NamedSharding(MESH, ROWS)))[0], raised(lambda: NamedSharding(MESH, P("z"))),
          raised(lambda: NamedSharding(MESH, P("data", "data"))),
          raised(lambda: jax.device_put(jnp.ones(8), NamedSharding(MESH, CELLS)))[0],
          raised(lambda: jax.make_mesh((4, 4), ("x", "y"))), raised(lambda: jax.make_mesh((4,), ("x", "y")))[0]]
