"""Placement of arrays and how it is reported: XLA's form of shardings, parts by hand, pjit in a mesh, memories, layouts, pictures.

python mesh_placing_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py mesh_placing` records jax's answers.
"""
import contextlib
import io
import pickle
import warnings

from mesh_telling import answer, auto_mesh, explicit_mesh, plain, program, raised, ramp, spec, types, values  # isort: skip

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import api, array, core, op_shardings, sharding_impls
from jax._src.lib import xla_client
from jax._src.pjit import pjit
from jax._src.random import prng, threefry2x32
from jax.experimental.layout import Format, Layout
from jax.experimental.shard_alike import shard_alike
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

warnings.simplefilter("ignore", DeprecationWarning)  # of `with mesh:`
SPECS = (P(), P("x"), P("y"), P(None, "x"), P("x", "y"), P("y", "x"), P(("x", "y")), P(("y", "x")), P(None, ("y", "x")))


# ---- shardings in XLA's form ----------------------------------------------------------------------------------------

def _described(hlo):
  return [str(hlo), hlo.is_replicated(), hlo.is_tiled(), hlo.num_devices(), list(hlo.tile_assignment_dimensions()),
          list(hlo.tile_assignment_devices()), hlo.replicate_on_last_tile_dim(), len(hlo.subgroup_types())]


@program
def shardings_as_xla_writes_them():
  meshes = auto_mesh(4, 2), auto_mesh(2, 4), auto_mesh(8, 1), auto_mesh(1, 1)
  return [_described(NamedSharding(mesh, one)._to_xla_hlo_sharding(2)) for mesh in meshes for one in SPECS]


@program
def sums_as_xla_writes_them():
  mesh = jax.make_mesh((2, 2, 2), ("x", "y", "z"))
  specs = P("x", unreduced={"y"}), P("x", unreduced={"y", "z"}), P(unreduced={"x"}), P(unreduced={"x", "y", "z"}), P(None, "z")
  return [_described(NamedSharding(mesh, one)._to_xla_hlo_sharding(2)) for one in specs]


@program
def equal_and_unequal_in_xlas_form():
  mesh, kind = auto_mesh(4, 2), xla_client.OpSharding.Type
  proto = xla_client.OpSharding()
  proto.type, proto.tile_assignment_dimensions, proto.replicate_on_last_tile_dim = kind.OTHER, [4, 1, 2], True
  proto.tile_assignment_devices = list(range(8))
  read = xla_client.HloSharding.from_proto(proto)
  named = NamedSharding(mesh, P("x"))._to_xla_hlo_sharding(2)
  manual = xla_client.HloSharding.iota_tile(dims=[2, 1, 2, 2], reshape_dims=[2, 2, 2], transpose_perm=[0, 1, 2],
                                            subgroup_types=[kind.REPLICATED, kind.MANUAL])
  return [read == named, hash(read) == hash(named), str(read), str(manual), named == xla_client.HloSharding.replicate(),
          op_shardings.are_hlo_shardings_equal(NamedSharding(auto_mesh(8, 1), P("y"))._to_xla_hlo_sharding(1),
                                               xla_client.HloSharding.replicate()),
          [list(map(int, op_shardings.get_num_ways_dim_sharded(named)[0])), op_shardings.get_num_ways_dim_sharded(named)[1]],
          xla_client.HloSharding.iota_tile([6, 35], [7, 10, 3], [2, 1, 0]).get_axis_sizes()]


@program
def parts_of_xlas_form():
  mesh = auto_mesh(4, 2)
  found = []
  for one in SPECS:
    named = NamedSharding(mesh, one)
    other = sharding_impls.GSPMDSharding(list(mesh.devices.flat), named._to_xla_hlo_sharding(2))
    found.append([other.shard_shape((8, 8)) == named.shard_shape((8, 8)), other.is_equivalent_to(named, 2), plain(other),
                  other.devices_indices_map((8, 8)) == named.devices_indices_map((8, 8)), other.is_fully_replicated])
  return found


@program
def indivisible_shapes():
  mesh = auto_mesh(4, 2)
  return [raised(NamedSharding(mesh, P("x", "y")).shard_shape, (8, 3)), raised(NamedSharding(mesh, P("x")).devices_indices_map, (6,))]


# ---- arrays of parts ------------------------------------------------------------------------------------------------

@program
def arrays_made_by_hand():
  sharding = NamedSharding(auto_mesh(4, 2), P("x", "y"))
  x = ramp(8, 4)
  parts = [jax.device_put(x[index], device) for device, index in sharding.addressable_devices_indices_map(x.shape).items()]
  made = array.ArrayImpl(core.ShapedArray(x.shape, np.float32), sharding, parts[::-1], committed=True)
  return [values(made), spec(made), isinstance(made, array.ArrayImpl), issubclass(array.ArrayImpl, jax.Array), values(made._value)]


@program
def wrong_parts():
  sharding = NamedSharding(auto_mesh(1, 2), P("x"))
  x = np.arange(16, dtype=np.float32).reshape(8, 2)
  make = jax.make_array_from_single_device_arrays

  def parts(*numbers, dtype=np.float32):
    return [jax.device_put(x.astype(dtype), jax.devices()[number]) for number in numbers]

  return [raised(make, x.shape, sharding, parts(0)), raised(make, x.shape, sharding, parts(2, 3)),
          raised(make, x.shape, sharding, parts(0, 0)), raised(make, (8, 4), sharding, parts(0, 1)),
          raised(array.ArrayImpl, core.ShapedArray(x.shape, np.float32), sharding, parts(0, 1, dtype=np.int32), True),
          raised(jax.make_array_from_callback, x.shape, sharding, lambda index: np.arange(5))]


@program
def the_same_objects():
  mesh = Mesh(jax.devices(), "x")
  return [Mesh(jax.devices(), "x") is mesh, P(None, "x") is P((), "x"), pickle.loads(pickle.dumps(P("x", None))) == P("x", None),
          str(Mesh(np.empty((), dtype=object), ()))]


@program
def keys_of_seeds():
  keys = prng.random_seed(np.arange(4).reshape(2, 2), impl=threefry2x32.threefry_prng_impl)
  bits = threefry2x32.threefry_random_bits(jnp.array([1, 2], "uint32"), 32, (3, 2))
  return [keys.shape, np.asarray(jax.random.key_data(keys)).tolist(), np.asarray(bits).tolist()]


@program
def results_follow_what_was_put():
  x, device = jnp.ones(2), jax.devices()[1]
  whole, number, row = jax.device_put(1, device), jax.device_put(1.0, device), jax.device_put(np.ones(2, np.float32), device)
  split = jax.device_put(ramp(8), NamedSharding(auto_mesh(4, 2), P("x")))
  results = [whole + x, number + x, row + x, whole.astype("float32"), jnp.zeros_like(row), jnp.full_like(row, 3.0), lax.full_like(row, 1),
             lax.full_like(row, 1, shape=()), jnp.ones_like(x), jnp.zeros_like(split), lax.full_like(split, 2),
             lax.full_like(split, 2, shape=())]
  return [[one.committed, sorted(device.id for device in one.devices()), values(one)] for one in results]


@program
def values_that_are_split_alike():
  split = NamedSharding(auto_mesh(4, 2), P("x", "y"))

  @jax.jit
  def f(a):
    _, b = shard_alike(a, jnp.arange(32.0).reshape(8, 4))
    return b, shard_alike(a, a * 2)[1]

  made = f(jax.device_put(ramp(8, 4), split))
  slope = jax.jit(jax.grad(lambda a: shard_alike(a, a * a)[1].sum()))(jax.device_put(ramp(8, 4), split))
  eager = shard_alike(jax.device_put(ramp(8, 4), split), jnp.ones((8, 4)))[1]
  return [values(made), [spec(one) for one in made], values(slope), spec(eager), raised(shard_alike, ramp(4), ramp(8)),
          raised(shard_alike, [ramp(4)], ramp(4))]


@program
def stacks_over_devices():
  stacked = api.device_put_sharded([(number, ramp(2) + number) for number in range(8)], jax.devices())
  same = api.device_put_replicated({"a": ramp(3)}, jax.devices()[:4])
  return [values(stacked), values(same), [list(map(str, one.sharding.spec)) for one in (*stacked, same["a"])],
          raised(api.device_put_sharded, [1], jax.devices()), raised(getattr, jax, "device_put_sharded")]


# ---- pjit in a mesh -------------------------------------------------------------------------------------------------

@program
def pjit_in_the_context_of_a_mesh():
  x = ramp(8, 2)
  found = []
  with auto_mesh(4, 2):
    for options in ({}, {"in_shardings": P("x"), "out_shardings": None}, {"in_shardings": None, "out_shardings": P("x", "y")}):
      f = pjit(lambda a: a * 2, **options)
      found += [spec(f(x)), values(f(x)), spec(jax.jit(f)(x))]
    found += [spec(jax.jit(lambda a: a * 2)(x)), spec(jax.vmap(pjit(lambda a: a * 2))(x)), plain(jax.sharding.get_abstract_mesh()),
              plain(jax.sharding.get_mesh()), spec(jax.jit(lambda a: jax.lax.with_sharding_constraint(a, P("x")))(x))]
  return found + [spec(pjit(lambda a: a * 2)(x)), raised(pjit(lambda a: a * 2, in_shardings=P("x")), x)]


@program
def prints_of_split_values():
  mesh, out = auto_mesh(4, 2), io.StringIO()
  split = NamedSharding(mesh, P("x"))

  def f(a):
    jax.debug.print("{}", a)
    return a

  with contextlib.redirect_stdout(out):
    results = [jax.jit(f)(jax.device_put(np.arange(4), split)), jax.jit(f, in_shardings=split)(np.arange(4, 8)),
               jax.jit(lambda a: f(a * 2))(jax.device_put(np.arange(4), split))]
    jax.effects_barrier()
  return [sorted(set(out.getvalue().split("\n"))), [spec(one) for one in results]]


@program
def devices_that_differ():
  one, two, x = auto_mesh(4, 2), auto_mesh(2, 2), ramp(8, 2)
  placed = jax.device_put(x, NamedSharding(one, P("x")))
  with two:
    found = [raised(pjit(lambda a: a), placed)]
  found.append(raised(jax.jit(lambda a, b: (a, b), out_shardings=(NamedSharding(one, P("x")), NamedSharding(two, P("x")))), x, x))
  found.append(raised(jax.lax.with_sharding_constraint, placed, NamedSharding(two, P("x"))))
  return found


@program
def contexts_that_are_refused():
  mesh = explicit_mesh(2, 2)

  def other_size():
    with jax.set_mesh(mesh), jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((4,), ("x",))):
      pass

  return [raised(jax.set_mesh, Mesh(jax.devices(), "x", (AxisType.Manual,))), raised(other_size),
          raised(jax.jit(lambda: jax.set_mesh(mesh))), raised(jax.jit(lambda: jax.sharding.get_mesh())),
          raised(NamedSharding, mesh, P(P.UNCONSTRAINED)),
          raised(jnp.full, (2,), 0, out_sharding=NamedSharding(mesh.abstract_mesh, P("x"), memory_kind="pinned_host"))]


# ---- types without values -------------------------------------------------------------------------------------------

@program
def types_that_are_placed():
  mesh = auto_mesh(4, 2)
  one = jax.ShapeDtypeStruct((8, 2), np.float32, sharding=NamedSharding(mesh, P("x")))
  named = jax.ShapeDtypeStruct((8, 2), np.float32, sharding=P("x"))
  with jax.set_mesh(mesh):
    found = [plain(named.sharding), plain(named)]
  return found + [plain(one), plain(one.update(shape=(4, 2))), one == jax.ShapeDtypeStruct((8, 2), np.float32),
                  one == one.update(weak_type=False), raised(lambda: named.sharding),
                  raised(jax.ShapeDtypeStruct, (8, 2), np.float32, sharding=P("x", None, None)),
                  raised(jax.ShapeDtypeStruct, (8, 2), np.float32, sharding="x"), raised(setattr, one, "shape", (3,)),
                  plain(jax.ShapeDtypeStruct.like(jax.device_put(ramp(8), NamedSharding(mesh, P("x")))).sharding.spec)]


@program
def types_made_by_hand():
  mesh = explicit_mesh(4, 2).abstract_mesh
  made = core.ShapedArray((8, 4), np.float32, sharding=NamedSharding(mesh, P("x")))
  return [str(made), made.str_short(), made.str_short(True), plain(made.sharding.spec),
          made.update(sharding=NamedSharding(mesh, P(None, "y"))).str_short(),
          raised(core.ShapedArray, (5, 2), np.int32, sharding=NamedSharding(mesh, P("x")))]


# ---- memories and layouts -------------------------------------------------------------------------------------------

@program
def kinds_of_memory():
  device, mesh, x = jax.devices()[0], auto_mesh(4, 2), ramp(8, 2)
  found = [[memory.kind for memory in device.addressable_memories()], device.default_memory().kind]
  for kind in ("device", "pinned_host", "unpinned_host"):
    single = jax.device_put(x, SingleDeviceSharding(device, memory_kind=kind))
    split = jax.device_put(x, NamedSharding(mesh, P("x"), memory_kind=kind))
    results = [single, split, single + 1, jax.jit(lambda a: a * 2)(split), jax.jit(lambda a: a.sum(0))(single),
               jax.jit(lambda a: a * 2, out_shardings=NamedSharding(mesh, P("x"), memory_kind=kind))(x)]
    found += [[one.sharding.memory_kind for one in results], values(results), [spec(one) for one in results]]
  return found


@program
def spaces_of_memory():
  host = jax.device_put(ramp(8), jax.memory.Space.Host)
  split = jax.device_put(jax.device_put(ramp(8), NamedSharding(auto_mesh(4, 2), P("x"))), jax.memory.Space.Host)
  back = jax.device_put(split, jax.memory.Space.Device)
  return [[one.sharding.memory_kind, spec(one), values(one)] for one in (host, split, back)]


@program
def layouts_of_arrays():
  x = jax.device_put(ramp(8, 4), NamedSharding(auto_mesh(4, 2), P("x")))
  compiled = jax.jit(lambda a: (a * 2, a.sum()), in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout.AUTO)).lower(
      jax.ShapeDtypeStruct((8, 4), np.float32)).compile()
  return [list(x.format.layout.major_to_minor), spec(x), list(compiled.input_formats[0][0].layout.major_to_minor),
          [list(one.layout.major_to_minor) for one in compiled.output_formats], raised(jax.device_put, ramp(8), Format(Layout.AUTO)),
          raised(jax.device_put, ramp(8), Format(Layout((0, 1)), x.sharding))]


# ---- pictures -------------------------------------------------------------------------------------------------------

def _drawn(function, *args, **kwargs):
  out = io.StringIO()
  with contextlib.redirect_stdout(out):
    function(*args, **kwargs)
  return out.getvalue()


@program
def pictures_of_shardings():
  mesh, found = auto_mesh(4, 2), []
  for shape, one in (((8, 8), P("x", "y")), ((8, 8), P("x")), ((8, 8), P(None, "y")), ((16,), P(("x", "y"))), ((5,), P()),
                     ((128, 10000), P("x", "y"))):
    found.append(_drawn(jax.debug.visualize_sharding, shape, NamedSharding(mesh, one)))
    found.append(_drawn(jax.debug.visualize_sharding, shape, NamedSharding(mesh, one), scale=2.0, min_width=12, max_width=60))
  return found + [_drawn(jax.debug.visualize_array_sharding, jax.device_put(ramp(8), NamedSharding(mesh, P("x")))),
                  raised(jax.debug.visualize_array_sharding, jnp.zeros((2, 2, 2)))]


@program
def shardings_that_are_inspected():
  seen = []

  def look(a):
    jax.debug.inspect_array_sharding(a, callback=lambda sharding: seen.append(plain(sharding.spec)))
    return a

  look({"a": jax.device_put(ramp(8), NamedSharding(auto_mesh(4, 2), P("y")))})
  with jax.set_mesh(explicit_mesh(4, 2)):
    result = jax.jit(look)(jax.device_put(ramp(8, 4), P("x", "y")))
  return [seen, types(result)]


# ---- stages ---------------------------------------------------------------------------------------------------------

def _whole_error(function, *args):
  try:
    function(*args)
  except Exception as error:  # noqa: BLE001
    return [type(error).__name__, plain(error)]
  return ["nothing"]


@program
def compiled_functions_and_placement():
  mesh = auto_mesh(4, 2)
  rows, columns = (NamedSharding(mesh, one) for one in (P("x"), P(None, "x")))
  x = jax.device_put(ramp(8, 4), rows)
  compiled = jax.jit(lambda first, rest: (first * 2, rest["a"].sum())).lower(x, {"a": jax.device_put(ramp(4, 4), columns)}).compile()
  one_device = jax.jit(lambda x: x + 1).lower(ramp(3)).compile()
  infos = jax.tree.leaves((compiled.out_info, one_device.out_info))
  found = [[info.shape, str(info.dtype), plain(info.sharding)] for info in infos]
  results = compiled(ramp(8, 4), {"a": ramp(4, 4)})  # inputs without a placement
  return [found, compiled.runtime_executable() is not None, values(results), [spec(y) for y in results],
          _whole_error(compiled, jax.device_put(ramp(8, 4), columns), {"a": jax.device_put(ramp(4, 4), rows)}),
          _whole_error(compiled, jax.device_put(ramp(8, 4), jax.devices()[5]), {"a": ramp(4, 4)}),
          values(compiled(jax.device_put(ramp(8, 4), NamedSharding(mesh, P("x", None))), {"a": ramp(4, 4)}))]


@program
def arguments_on_different_devices():
  a, b = (jax.device_put(ramp(3), device) for device in jax.devices()[:2])
  split = jax.device_put(ramp(8, 2), NamedSharding(auto_mesh(4, 2), P("x", "y")))

  def add(x, y=None, *rest, **named):
    return x, y, rest, named

  jitted = jax.jit(add)
  return [_whole_error(jitted, a, b), _whole_error(jitted, (a, {"k": [split]})), _whole_error(jitted, a, a, b),
          _whole_error(lambda: jitted(a, z=split)), _whole_error(jitted, a, a), _whole_error(jitted, ramp(3), b)]


@program
def lowering_without_values():
  def text_of(*args):
    return len(jax.jit(lambda x: x * 2).lower(*args).as_text()) > 0

  with jax.set_mesh(explicit_mesh(4, 2)):
    gone = jax.device_put(ramp(8, 4), P("x", "y"))
    gone.delete()
    told = []
    jax.jit(lambda x: told.append(plain(jax.typeof(x * 2))) or x).lower(jax.ShapeDtypeStruct((8, 4), "float32", sharding=gone.sharding))
    return [text_of(gone), told]


@program
def executables_as_bytes():
  from jax.experimental.serialize_executable import deserialize_and_load, serialize
  x = jax.device_put(ramp(8, 4), NamedSharding(auto_mesh(4, 2), P("x")))
  compiled = jax.jit(lambda x, *, by: {"a": x * by, "b": x.sum(1)}).lower(x, by=3.0).compile()
  loaded = deserialize_and_load(*serialize(compiled))
  plain_one = deserialize_and_load(*serialize(jax.jit(lambda t: t[0] + t[1]).lower((ramp(3), ramp(3))).compile()),
                                   execution_devices=jax.devices()[:1])
  results, total = loaded(x, by=2.0), jax.new_ref(0.0)

  @jax.jit
  def count(x):
    total[...] += x
  return [values(results), [spec(y) for y in jax.tree.leaves(results)], sorted(results), values(plain_one((ramp(3), ramp(3)))),
          raised(serialize, count.lower(1.0).compile())]


@program
def specifications_inside_of_partly_manual_maps():
  mesh = auto_mesh(2, 4)

  def body(x):
    return jax.lax.with_sharding_constraint(x, P(None, "y")) * 2

  x = jax.device_put(ramp(8, 8), NamedSharding(mesh, P("x", "y")))
  mapped = jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), axis_names={"x"}, check_vma=False)
  return [values(jax.jit(mapped)(x)), raised(jax.jit(lambda x: jax.lax.with_sharding_constraint(x, P("x"))), ramp(8))]


if __name__ == "__main__":
  answer()
