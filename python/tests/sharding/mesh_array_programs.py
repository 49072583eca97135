"""Arrays, jit, pmap and processes over eight devices, as in tutorials on sharding.

python mesh_array_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py mesh_array` records jax's answers.
"""
import functools

from mesh_telling import answer, auto_mesh, explicit_mesh, plain, program, raised, ramp, shards, spec, told, values  # isort: skip

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import mesh_utils, multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding


# ---- arrays on meshes -----------------------------------------------------------------------------------------------

@program
def parts_of_an_array():
  x = jax.device_put(ramp(8, 4), NamedSharding(auto_mesh(4, 2), P("x", "y")))
  return [shards(x), x.is_fully_replicated, x.is_fully_addressable, x.sharding.shard_shape(x.shape), len(x.global_shards)]


@program
def parts_over_both_axes():
  x = jax.device_put(ramp(16), NamedSharding(auto_mesh(4, 2), P(("y", "x"))))
  return shards(x)


@program
def replicas():
  x = jax.device_put(ramp(4, 2), NamedSharding(auto_mesh(4, 2), P(None, "y")))
  return [shards(x), x.sharding.is_fully_replicated, sorted(device.id for device in x.devices())]


@program
def indices_of_devices():
  sharding = NamedSharding(auto_mesh(2, 4), P("y", "x"))
  found = sharding.devices_indices_map((8, 4))
  return [[device.id, [[s.start, s.stop] for s in index]] for device, index in found.items()]


@program
def shardings_that_mean_the_same():
  mesh = auto_mesh(4, 2)
  one, two = NamedSharding(mesh, P("x")), NamedSharding(mesh, P("x", None))
  three, four = NamedSharding(mesh, P(("x",))), NamedSharding(mesh, P("y"))
  return [one == two, one.is_equivalent_to(two, 2), one == three, one.is_equivalent_to(four, 1),
          hash(one) == hash(NamedSharding(mesh, P("x"))), one.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2)]


@program
def an_array_by_callback():
  asked = []

  def part(index):
    asked.append([[s.start, s.stop] for s in index])
    return ramp(8, 2)[index] * 2
  x = jax.make_array_from_callback((8, 2), NamedSharding(auto_mesh(4, 2), P("x")), part)
  return [values(x), sorted({str(index) for index in asked}), shards(x)[:3]]


@program
def an_array_of_single_device_arrays():
  mesh = auto_mesh(8)
  parts = [jax.device_put(ramp(1, 3) + i, device) for i, device in enumerate(mesh.devices.flat)]
  x = jax.make_array_from_single_device_arrays((8, 3), NamedSharding(mesh, P("x")), parts)
  return [values(x), values(jax.jit(lambda a: a.sum(0))(x)), spec(x)]


@program
def an_array_of_process_local_data():
  sharding = NamedSharding(auto_mesh(4, 2), P("x", "y"))
  x = jax.make_array_from_process_local_data(sharding, ramp(8, 4))
  y = jax.make_array_from_process_local_data(NamedSharding(auto_mesh(4, 2), P("x")), ramp(4, 3), (4, 3))
  return [values(x), spec(x), values(y), spec(y), shards(y)[:2]]


@program
def a_tree_of_process_local_data():
  mesh = auto_mesh(8)
  batch = {"image": ramp(8, 2, 2), "label": np.arange(8)}
  x = jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), leaf), batch)
  return told(x)


@program
def host_reads_of_shards():
  x = jax.device_put(ramp(8, 2), NamedSharding(auto_mesh(8), P("x")))
  return [float(x[3, 1]), np.asarray(x[2:4]).tolist(), [float(row.sum()) for row in x], np.asarray(x).sum().item(), x.tolist()[0]]


@program
def placed_trees():
  mesh = auto_mesh(4, 2)
  shardings = {"w": NamedSharding(mesh, P("x", "y")), "b": NamedSharding(mesh, P("y"))}
  placed = jax.device_put({"w": ramp(4, 4), "b": ramp(4)}, shardings)
  whole = jax.device_put(placed, NamedSharding(mesh, P()))
  return [told(placed), told(whole)]


@program
def moves_between_meshes():
  x = jax.device_put(ramp(8, 8), NamedSharding(auto_mesh(8), P("x")))
  y = jax.device_put(x, NamedSharding(auto_mesh(4, 2), P("y", "x")))
  z = jax.device_put(y, SingleDeviceSharding(jax.devices()[3]))
  return [spec(y), shards(y)[3], spec(z), [d.id for d in z.devices()], np.array_equal(x, z)]


@program
def wrong_places():
  mesh = auto_mesh(4, 2)
  return [raised(jax.device_put, ramp(6, 4), NamedSharding(mesh, P("x"))), raised(NamedSharding, mesh, P("z")),
          raised(NamedSharding, mesh, P("x", "x")), raised(jax.device_put, ramp(4), NamedSharding(mesh, P(None, "x"))),
          raised(jax.make_mesh, (4, 4), ("x", "y")), raised(jax.make_mesh, (4,), ("x", "y")),
          raised(jax.make_array_from_callback, (6,), NamedSharding(mesh, P("x")), lambda i: ramp(6)[i])]


@program
def meshes():
  mesh = Mesh(mesh_utils.create_device_mesh((2, 4)), ("a", "b"))
  other = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"), axis_types=(AxisType.Explicit, AxisType.Auto))
  return [dict(mesh.shape), mesh.size, mesh.axis_names, plain(other.axis_types), [d.id for d in mesh.devices.flat], mesh == mesh,
          plain(mesh.abstract_mesh), other.abstract_mesh.explicit_axes, mesh.devices.shape, mesh.empty, plain(repr(mesh))]


@program
def specifications():
  return [repr(P("x", None)), repr(P(("x", "y"), None, "z")), P("x") == P("x", None), len(P("x", None)), tuple(P("x", ("y", "z"))),
          repr(P(unreduced={"x"})), P("x").index("x"), repr(P(None) + P("x")), P(("x",)) == P("x"), repr(P(()))]


# ---- jit with shardings ---------------------------------------------------------------------------------------------

@program
def shardings_of_jit():
  mesh = auto_mesh(4, 2)
  rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
  f = jax.jit(lambda a, b: (a @ b, a.sum()), in_shardings=(rows, whole), out_shardings=(NamedSharding(mesh, P("x", "y")), None))
  out = f(ramp(8, 4), ramp(4, 4))
  return [values(out), spec(out[0])]


@program
def constraints_inside():
  mesh = auto_mesh(4, 2)

  @jax.jit
  def f(a):
    b = lax.with_sharding_constraint(a * 2, NamedSharding(mesh, P("x", "y")))
    return lax.with_sharding_constraint(jnp.sin(b).sum(1), NamedSharding(mesh, P("y")))
  out = f(ramp(8, 4))
  return [values(out), spec(out)]


@program
def specifications_in_a_mesh():
  mesh = auto_mesh(4, 2)
  with jax.set_mesh(mesh):
    f = jax.jit(lambda a: lax.with_sharding_constraint(a + 1, P("y", "x")), in_shardings=P("x"), out_shardings=P("x", "y"))
    out = f(ramp(8, 4))
    return [values(out), spec(out), plain(jax.sharding.get_mesh().axis_names), plain(jax.sharding.get_abstract_mesh())]


@program
def ahead_of_time():
  mesh = auto_mesh(4, 2)
  sharding = NamedSharding(mesh, P("x", "y"))
  lowered = jax.jit(lambda a: a * 2, in_shardings=sharding, out_shardings=sharding).lower(jax.ShapeDtypeStruct((8, 4), jnp.float32))
  compiled = lowered.compile()
  x = jax.device_put(ramp(8, 4), sharding)
  return [values(compiled(x)), plain(compiled.input_shardings[0][0].spec), plain(compiled.output_shardings.spec),
          plain(lowered.out_info.shape)]


@program
def shapes_with_shardings():
  mesh = auto_mesh(4, 2)
  expected = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=NamedSharding(mesh, P("x")))
  compiled = jax.jit(lambda a: a.sum(1)).lower(expected).compile()
  x = jax.device_put(ramp(8, 4), expected.sharding)
  return [values(compiled(x)), plain(compiled.input_shardings[0][0].spec)]


@program
def donated_buffers():
  mesh = auto_mesh(8)
  sharding = NamedSharding(mesh, P("x"))
  x = jax.device_put(ramp(8, 2), sharding)
  f = jax.jit(lambda a: a + 1, donate_argnums=0, out_shardings=sharding)
  out = f(x)
  return [values(out), x.is_deleted()]


@program
def wrong_shardings_of_jit():
  mesh = auto_mesh(4, 2)
  other = Mesh(np.array(jax.devices()[:2]), ("z",))
  x, y = jax.device_put(ramp(8), NamedSharding(mesh, P("x"))), jax.device_put(ramp(8), NamedSharding(other, P("z")))
  f = jax.jit(lambda a: a, in_shardings=(NamedSharding(mesh, P("x")), NamedSharding(mesh, P())))
  return [raised(jax.jit(lambda a, b: a + b), x, y), raised(f, x),
          raised(jax.jit(lambda a: a, out_shardings=NamedSharding(mesh, P(None, "x"))), x)[0],
          raised(jax.jit(lambda a: lax.with_sharding_constraint(a, NamedSharding(mesh, P("x")))), ramp(6)),
          raised(jax.jit(lambda a: a, in_shardings=P("x")), x), raised(lambda: lax.with_sharding_constraint(x, P("x")))]


@program
def a_layer_on_two_axes():
  mesh = auto_mesh(4, 2)
  place = lambda array, *names: jax.device_put(array, NamedSharding(mesh, P(*names)))  # noqa: E731
  params = {"w1": place(ramp(8, 16) / 8, None, "y"), "b1": place(ramp(16), "y"), "w2": place(ramp(16, 4) / 8, "y", None)}
  x, target = place(ramp(8, 8), "x", None), place(ramp(8, 4), "x", None)

  def loss(p, a, b):
    hidden = jax.nn.relu(a @ p["w1"] + p["b1"])
    return jnp.mean((hidden @ p["w2"] - b) ** 2)

  @jax.jit
  def step(p, a, b):
    value, slope = jax.value_and_grad(loss)(p, a, b)
    return value, jax.tree.map(lambda w, g: w - 1e-3 * g, p, slope)
  out = []
  for _ in range(3):
    value, params = step(params, x, target)
    out.append(round(float(value), 4))
  return [out, values(jax.tree.map(jnp.sum, params))]


@program
def random_numbers_of_a_mesh():
  mesh = auto_mesh(4, 2)
  sharding = NamedSharding(mesh, P("x", "y"))
  draw = jax.jit(lambda key: jax.random.normal(key, (8, 4)), out_shardings=sharding)
  x = draw(jax.random.key(3))
  keys = jax.device_put(jax.random.split(jax.random.key(1), 8), NamedSharding(mesh, P("x")))
  y = jax.jit(jax.vmap(lambda key: jax.random.uniform(key, (2,))))(keys)
  return [values(x), spec(x), values(y), np.array_equal(x, jax.random.normal(jax.random.key(3), (8, 4)))]


@program
def operations_on_placed_arrays():
  mesh = auto_mesh(4, 2)
  x = jax.device_put(ramp(8, 4), NamedSharding(mesh, P("x", "y")))
  out = [x + 1, x.T, x.sum(), x.reshape(32), jnp.concatenate([x, x]), x[::2], x.at[1].set(7.0), jnp.sort(x, axis=0), x @ x.T,
         jnp.cumsum(x, axis=0), jnp.take(x, jnp.array([3, 1]), axis=0), jnp.linalg.norm(x), jnp.fft.rfft(x, axis=0).real]
  return [values(out), [leaf.sharding.device_set == x.sharding.device_set for leaf in out[:4]]]


@program
def loops_over_placed_arrays():
  mesh = auto_mesh(4, 2)
  x = jax.device_put(ramp(8, 4), NamedSharding(mesh, P("x", "y")))

  @jax.jit
  def f(a):
    carry, ys = lax.scan(lambda c, row: (c * 0.5 + row, c.sum()), jnp.zeros(4), a)
    while_value = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.tanh(s[1] + a)), (0, a))[1]
    chosen = lax.cond(a.sum() > 0, lambda v: v * 2, lambda v: v - 1, a)
    return carry, ys, while_value, chosen
  return values(f(x))


@program
def default_devices():
  devices, where = jax.devices(), lambda x: [[device.id for device in x.devices()], x.committed]
  with jax.default_device(devices[2]):
    x, key = jnp.arange(4.0), jax.random.key(1)
    made = [jnp.array([1, 2]), jnp.asarray(np.ones(3)), jnp.ones(3), jax.device_put(np.ones(2)), jax.jit(lambda: jnp.zeros(2))(), x,
            jax.random.uniform(key, (2,)), jax.grad(lambda v: (v ** 2).sum())(x), jax.vmap(jnp.sin)(x), jnp.cumsum(x)]
    other = jax.device_put(x, devices[5])
    made += [other, other + x, jax.jit(lambda a, b: a @ b)(other, x)]
  double = jax.jit(lambda v: v * 2, device=devices[3])
  made += [x, x + 1, jax.jit(lambda v: v + 1)(x), double(np.ones(2)), double(x)]
  return [[where(one) for one in made], values(made[6:])]


# ---- meshes in context ----------------------------------------------------------------------------------------------

@program
def initial_weights():
  with jax.set_mesh(explicit_mesh(4)):
    key, init = jax.random.key(0), jax.nn.initializers
    out = [init.he_normal()(key, (8, 2), jnp.float32, out_sharding=P("x")), init.uniform()(key, (8, 2), out_sharding=P("x")),
           init.constant(3.0)(key, (8, 2), out_sharding=P("x", None)), init.zeros(key, (8,), out_sharding=P("x")),
           init.truncated_normal()(key, (4, 4), out_sharding=P(None, "x"))]
    return [told(out), told(jax.random.normal(key, (8, 2), out_sharding=P("x"))), told(jnp.arange(8.0, out_sharding=P("x")))]


@program
def contexts():
  mesh = explicit_mesh(4, 2)
  seen = [jax.sharding.get_abstract_mesh().empty]
  with jax.set_mesh(mesh):
    seen.append(plain(jax.sharding.get_abstract_mesh()))
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh.update_axis_types({"x": AxisType.Auto})):
      seen.append(plain(jax.sharding.get_abstract_mesh().axis_types))
    seen.append(plain(jax.jit(lambda a: jax.typeof(a + 1).sharding.spec[0] and a)(jax.device_put(ramp(8), P("x"))).sharding.spec))
  seen.append(jax.sharding.get_abstract_mesh().empty)
  return seen


# ---- pmap and processes ---------------------------------------------------------------------------------------------

@program
def replicated_training():
  @functools.partial(jax.pmap, axis_name="i")
  def step(w, x):
    value, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * lax.pmean(slope, "i"), lax.pmean(value, "i")
  w = jnp.stack([jnp.asarray(ramp(3, 2))] * 8)
  w, value = step(w, ramp(8, 2, 3))
  return [values(w), values(value), spec(w)]


@program
def pmap_with_axes():
  f = jax.pmap(lambda a, b: a * b + lax.axis_index("i"), axis_name="i", in_axes=(0, None), out_axes=1)
  g = jax.pmap(lambda a: lax.all_gather(a, "i"), axis_name="i")
  return [values(f(ramp(8, 2), 2.0)), np.shape(g(ramp(8, 2))), values(jax.pmap(jnp.sin)(ramp(4, 2)))]


@program
def one_process():
  mesh = auto_mesh(8)
  x = multihost_utils.host_local_array_to_global_array(ramp(8, 2), mesh, P("x"))
  y = multihost_utils.global_array_to_host_local_array(x, mesh, P("x"))
  multihost_utils.sync_global_devices("here")
  multihost_utils.assert_equal(np.arange(3), "all alike")
  gathered = [multihost_utils.process_allgather(ramp(2)), multihost_utils.process_allgather(ramp(2), tiled=True),
              multihost_utils.broadcast_one_to_all(ramp(2)), multihost_utils.process_allgather(x, tiled=True)]
  return [told(x), values(y), values(gathered), jax.process_index(), jax.process_count(), len(jax.local_devices())]


if __name__ == "__main__":
  answer()
