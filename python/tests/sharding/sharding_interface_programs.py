"""Calls of the interface of meshes, specs, shardings and shard_map; each returns its result or its error.

python sharding_interface_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py sharding_interface` records jax's answers.
"""
import json
import re
import sys

if sys.argv[1] == "capibara":
  import capibara.jax
  capibara.jax.install()

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

Auto, Explicit = AxisType.Auto, AxisType.Explicit
DEVICES = jax.devices()
AUTO = jax.make_mesh((4, 2), ("x", "y"), axis_types=(Auto, Auto))
TYPED = jax.make_mesh((4, 2), ("x", "y"))
MIXED = jax.make_mesh((4, 2), ("x", "y"), axis_types=(Explicit, Auto))
HALF = AbstractMesh((2,), ("x",))
PROGRAMS = {}


def program(name, function, mesh=None):
  def answer():
    try:
      if mesh is None:
        return shown(function())
      with jax.set_mesh(mesh):
        return shown(function())
    except Exception as error:  # noqa: BLE001
      # Class names differ, and some of our errors end with an additional hint.
      first = re.sub(r"<class '[^']*'>", "<class>", str(error).split("\n")[0])
      return [type(error).__name__, first]
  PROGRAMS[name] = answer


def shown(value):
  if isinstance(value, (jax.Array, np.ndarray)):
    return [str(value.dtype), np.asarray(value).tolist()]
  if isinstance(value, (tuple, list)):
    return [shown(one) for one in value]
  return str(value)


def split(shape=(8, 4), *entries, mesh=AUTO):
  return jax.device_put(jnp.arange(float(np.prod(shape))).reshape(shape), NamedSharding(mesh, P(*entries)))


def subclass():
  class Own(P):
    pass
  return Own


# ---- specs ----
program("nested_tuple", lambda: P("x", ("z", ("a",))))
program("nested_tuple_first", lambda: P((("a", "b"), "c")))
program("subclass", subclass)
program("sum_of_specs", lambda: sorted((P("x", unreduced={"z"}) + P("a", unreduced={"b"})).unreduced))
program("sum_with_unreduced", lambda: P("x", unreduced={"z"}) + (None,))
program("sum_with_reduced", lambda: (None,) + P("x", reduced={"z"}))
program("sum_with_list", lambda: P("x") + [None])
program("unreduced_none", lambda: P("x", unreduced={"y", None}))

# ---- meshes ----
program("name_none", lambda: Mesh(np.array(DEVICES[:8]).reshape(2, 4), (None, "x")))
program("one_type_for_two_axes", lambda: jax.make_mesh((2, 1), ("x", "y"), axis_types=Auto))
program("one_type_for_two_abstract_axes", lambda: AbstractMesh((2, 1), ("x", "y"), axis_types=Auto))
program("type_of_text", lambda: AbstractMesh((2,), ("x",), axis_types=("explicit",)))
program("type_is_text", lambda: AbstractMesh((2,), ("x",), axis_types="explicit"))
program("mesh_type_of_text", lambda: Mesh(np.array(DEVICES[:2]), "x", axis_types=("explicit",)))
program("two_types_for_one_axis", lambda: Mesh(np.array(DEVICES[:2]), "x", axis_types=(Auto, Auto)))
program("abstract_name_alone", lambda: tuple(AbstractMesh((2,), "x", axis_types=Auto).axis_names))
program("make_mesh_name_alone", lambda: jax.make_mesh((2,), "dp").axis_names)
program("make_mesh_names_missing", lambda: jax.make_mesh((2, 4), ("a",)))
program("make_mesh_too_large", lambda: jax.make_mesh((64,), ("a",)))
program("mesh_without_axes", lambda: (Mesh(np.empty((), dtype=object), []).size, Mesh(np.empty((), dtype=object), []).abstract_mesh.size))
program("mesh_decorates", lambda: Mesh(np.array(DEVICES[:2]), "x")(lambda: 3)())

# ---- shardings ----
program("memory_kind", lambda: NamedSharding(HALF, P(), memory_kind="weird_device"))
program("memory_kind_of_host", lambda: NamedSharding(HALF, P(), memory_kind="pinned_host").memory_kind)
program("unreduced_unknown", lambda: NamedSharding(AUTO, P("x", unreduced={"a"})))
program("unreduced_auto", lambda: NamedSharding(AUTO, P("x", unreduced={"y"})))
program("reduced_unknown", lambda: NamedSharding(TYPED, P("x", reduced={"b"})))
program("rank_too_small", lambda: NamedSharding(AUTO, P(None, ("x",), None)).check_compatible_aval((8, 2)))
program("rank_of_scalar", lambda: NamedSharding(AUTO, P("x")).check_compatible_aval(()))
program("rank_fits", lambda: NamedSharding(AUTO, P("x")).check_compatible_aval((8,)))
program("spec_without_mesh", lambda: jax.jit(lambda x: x, in_shardings=P("x"))(jnp.arange(8)))

program("constraint_none", lambda: lax.with_sharding_constraint(jnp.arange(8), None))
program("in_shardings_open", lambda: jax.jit(lambda x: x, in_shardings=NamedSharding(AUTO, P(P.UNCONSTRAINED, "x"))))
program("out_shardings_open", lambda: jax.jit(lambda x: x, out_shardings=NamedSharding(AUTO, P(P.UNCONSTRAINED, "x"))))
program("sizes_in_tuples", lambda: jax.make_mesh(((4,), 4), ("x", "y")))
program("sizes_of_numpy", lambda: jax.make_mesh((1, np.int32(1)), ("x", "y")).axis_names)
program("struct_of_small_rank", lambda: jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=NamedSharding(AUTO, P(None, "x", None))))
program("pmap_without_devices", lambda: jax.pmap(lambda x: x, devices=[]))
program("pmap_mean_of_booleans", lambda: jax.pmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.arange(8) % 4 == 0))
program("constraint_without_devices", lambda: jax.jit(lambda x: lax.with_sharding_constraint(
    x, NamedSharding(AUTO.abstract_mesh, P("x"))))(split((8, 4))).sharding)
program("eager_constraint_without_devices",
        lambda: lax.with_sharding_constraint(split((8, 4)), NamedSharding(AUTO.abstract_mesh, P("x"))).sharding)
program("constraint_of_unplaced", lambda: lax.with_sharding_constraint(jnp.arange(8.0), NamedSharding(AUTO.abstract_mesh, P("x"))))
program("constraint_of_small_rank", lambda: lax.with_sharding_constraint(jnp.arange(8), NamedSharding(AUTO, P("x", "y"))))
program("uneven_constraint", lambda: jax.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(AUTO, P("x"))))(jnp.arange(6)))
program("put_of_small_rank", lambda: jax.device_put(jnp.arange(6), NamedSharding(AUTO, P("x", "y"))))
program("put_by_spec_without_mesh", lambda: jax.device_put(jnp.arange(8), P("x")))
program("device_and_in_shardings", lambda: jax.jit(lambda x: x, device=DEVICES[0], in_shardings=NamedSharding(AUTO, P("x"))))
program("device_and_out_shardings", lambda: jax.jit(lambda x: x, device=DEVICES[0], out_shardings=NamedSharding(AUTO, P("x"))))
program("other_sizes", lambda: AUTO.abstract_mesh.update(axis_sizes=(2, 4), axis_names=("a", "b")).shape_tuple)
program("other_types", lambda: AUTO.abstract_mesh.update(axis_types=(Explicit, Explicit)).axis_types)

# ---- arrays of parts ----
program("no_parts", lambda: jax.make_array_from_single_device_arrays((8, 2), NamedSharding(AUTO, P("x")), []))
program("parts_of_other_dtype",
        lambda: jax.make_array_from_single_device_arrays((8,), SingleDeviceSharding(DEVICES[0]), [jnp.arange(8)], dtype=jnp.float32))
program("parts_are_one_array", lambda: jax.make_array_from_single_device_arrays((3,), SingleDeviceSharding(DEVICES[0]), jnp.arange(3)))
program("parts_are_traced", lambda: jax.jit(
    lambda x: jax.make_array_from_single_device_arrays(x.shape, SingleDeviceSharding(DEVICES[0]), [x]))(jnp.arange(3)))
program("parts_are_split", lambda: jax.make_array_from_single_device_arrays((8, 4), NamedSharding(AUTO, P("x")), [split((8, 4), "x")] * 8))
program("callback_traced", lambda: jax.jit(
    lambda x: jax.make_array_from_callback(x.shape, NamedSharding(AUTO, P("x")), lambda i: x[i]))(jnp.arange(8)))
program("local_data_on_device", lambda: jax.make_array_from_process_local_data(DEVICES[0], np.arange(4.0)))
program("local_data_of_other_shape", lambda: jax.make_array_from_process_local_data(DEVICES[0], {"a": np.ones((2, 5))}, (2, 8)))
program("local_data_shapes_in_tree", lambda: jax.make_array_from_process_local_data(DEVICES[0], {"a": np.ones((2, 5))}, {"a": (2, 5)})["a"])
program("local_data_by_spec", lambda: jax.make_array_from_process_local_data(P("x"), np.ones((8, 2))).sharding, AUTO)
program("deleted_twice", lambda: [x.delete() or x.delete() for x in [jnp.arange(3)]])

# ---- arrays like others ----
for like in ("zeros_like", "ones_like", "empty_like"):
  program(like, lambda like=like: getattr(jnp, like)(split((8, 4), "x")).sharding)
program("full_like", lambda: jnp.full_like(split((8, 4), None, "y"), 3).sharding)
program("zeros_like_of_other_shape", lambda: jnp.zeros_like(split((8, 4), "x"), shape=(4,)).sharding.num_devices)
program("zeros_like_typed", lambda: jax.typeof(jnp.zeros_like(split((8, 4), "x", mesh=TYPED))), TYPED)

# ---- shard_map and smap ----
program("axis_names_tuple",
        lambda: jax.shard_map(lambda x: x, mesh=AUTO, in_specs=P("x"), out_specs=P("x"), axis_names=("x",))(jnp.arange(8)))
program("nothing_to_infer", lambda: jax.shard_map(lambda x: x, mesh=MIXED, out_specs=P("y"), axis_names={"y"})(jnp.arange(8)))
program("untyped_argument", lambda: jax.shard_map(lambda x: x, mesh=TYPED, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8)))
program("untyped_argument_in_jit",
        lambda: jax.jit(jax.shard_map(lambda x: x, mesh=TYPED, in_specs=P("x"), out_specs=P("x")))(jnp.arange(8)))
program("untyped_whole_argument", lambda: jax.shard_map(lambda x: x * 2, mesh=TYPED, in_specs=P(), out_specs=P())(jnp.arange(8)))
program("unreduced_over_auto_axes",
        lambda: jax.shard_map(lambda x: x, mesh=AUTO, in_specs=P(None, unreduced={"x"}), out_specs=P("x"))(jnp.arange(8)))
program("mesh_of_another_context", lambda: jax.shard_map(lambda x: x, mesh=AUTO, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8)), TYPED)
program("object_argument",
        lambda: jax.shard_map(lambda o, x: x * o["a"], mesh=AUTO, in_specs=(None, P("x")), out_specs=P("x"))({"a": 3}, jnp.arange(8)))
program("no_specs_at_all", lambda: jax.shard_map(lambda x: x, mesh=AUTO, in_specs=None, out_specs=P())(3.0))
program("objects_in_tree", lambda: jax.shard_map(lambda x, o: x * len(o), mesh=AUTO, in_specs=(P("x"), (None, None)), out_specs=P("x"))(
    jnp.arange(8), (object(), "text")))
program("inferred_part", lambda: jax.shard_map(lambda x: x * x.shape[0] + x.shape[1], out_specs=P("x"), axis_names={"x"})(
    split((8, 4), "x", "y", mesh=TYPED)), TYPED)
program("inferred_part_sharding", lambda: jax.shard_map(lambda x: x * 2, out_specs=P("x"), axis_names={"x"})(
    split((8, 4), "x", "y", mesh=TYPED)).sharding, TYPED)
program("smap_in_axes_list", lambda: jax.smap(lambda x: x, in_axes=[0], out_axes=0, axis_name="x")(jnp.arange(8)))
program("smap_out_axes_text", lambda: jax.smap(lambda x: x, in_axes=0, out_axes="q", axis_name="x")(jnp.arange(8)))
program("smap_two_names", lambda: jax.smap(lambda x: x, in_axes=0, out_axes=0, axis_name=("x",))(jnp.arange(8)))
program("smap_without_mesh", lambda: jax.smap(lambda x: x, in_axes=0, out_axes=0, axis_name="x")(jnp.arange(8)))
program("smap_sum", lambda: jax.smap(lambda x: lax.psum(x, "x"), in_axes=0, out_axes=None, axis_name="x")(jnp.arange(8.0)), AUTO)
program("smap_second_dimension", lambda: jax.smap(lambda x, y: x + y.shape[1], in_axes=(None, 1), out_axes=None, axis_name="x")(
    jnp.arange(3.0), jnp.ones((2, 8))), AUTO)
program("smap_in_smap", lambda: jax.smap(lambda x: jax.smap(lambda y: y * y.shape[0], in_axes=0, out_axes=0, axis_name="y")(x) + x.shape[0],
                                         in_axes=0, out_axes=0, axis_name="x")(jnp.arange(16.0)), AUTO)
program("smap_in_smap_typed", lambda: jax.smap(lambda x: jax.smap(lambda y: y * y.shape[1], in_axes=1, out_axes=1, axis_name="y")(x) + 1,
                                               out_axes=0, axis_name="x")(split((8, 4), "x", "y", mesh=TYPED)), TYPED)
program("smap_in_smap_mixed", lambda: jax.smap(lambda x: jax.smap(lambda y: jnp.sin(y), in_axes=1, out_axes=1, axis_name="x")(x * 2),
                                               in_axes=0, out_axes=0, axis_name="y")(split((8, 4), "y", mesh=MIXED)), MIXED)
program("smap_inferred", lambda: jax.smap(lambda x: x * x.shape[0], out_axes=0, axis_name="x")(split((8, 4), "x", mesh=MIXED)), MIXED)
program("smap_not_inferred", lambda: jax.smap(lambda x: x * 2, out_axes=0, axis_name="y")(jnp.arange(8)), MIXED)
program("what_varies", lambda: jax.shard_map(lambda x: [seen(x), seen(lax.psum(x, "x")), seen(jnp.ones(3)), x][-1], mesh=AUTO,
                                             in_specs=P("x", "y"), out_specs=P("x", "y"))(jnp.ones((8, 4))) is None or SEEN)
program("what_varies_outside", lambda: (jax.typeof(jnp.ones(3)).mat.varying, jax.typeof(jnp.ones(3)).mat.empty))
SEEN = []


def seen(x):
  SEEN.append(sorted(jax.typeof(x).mat.varying))
  return x


# ---- missing axes ----
program("axis_index_unbound", lambda: lax.axis_index("q"))
program("psum_unbound", lambda: jax.jit(lambda x: lax.psum(x, "q"))(jnp.arange(3.0)))
program("vmap_unmapped_split", lambda: jax.vmap(lambda x, y: x + y, in_axes=(0, None))(
    split((8, 4), "x", mesh=TYPED), jax.device_put(jnp.ones(4), P("x"))), TYPED)
program("vmap_unmapped_split_product", lambda: jax.vmap(lambda x, y: x @ y, in_axes=(0, None))(
    split((8, 4), "x", mesh=TYPED), jax.device_put(jnp.ones((4, 4)), P("x"))), TYPED)
program("vmap_unmapped_whole", lambda: jax.typeof(jax.vmap(lambda x, y: x @ y, in_axes=(0, None))(
    split((8, 4), "x", mesh=TYPED), jax.device_put(jnp.ones((4, 4)), P(None, "y")))), TYPED)

# ---- vmap over axes of a mesh ----
def constrained(*entries):
  return lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(AUTO, P(*entries)))


program("spmd_constraint", lambda: jax.jit(jax.vmap(constrained("y"), spmd_axis_name="x"))(jnp.ones((8, 4))).sharding)
program("spmd_constraint_behind", lambda: jax.jit(jax.vmap(constrained("y"), in_axes=1, out_axes=1, spmd_axis_name="x"))(
    jnp.ones((4, 8))).sharding)
program("spmd_constraint_two_axes", lambda: jax.jit(jax.vmap(constrained(), spmd_axis_name=("x", "y")))(jnp.ones((8, 4))).sharding)
program("spmd_constraint_used", lambda: jax.jit(jax.vmap(constrained("x"), spmd_axis_name="x"))(jnp.ones((8, 4))))
program("spmd_text", lambda: str(
    jax.make_jaxpr(jax.vmap(constrained("y"), spmd_axis_name="x"))(jnp.ones((8, 4)))).split("sharding=")[1][:90])
program("spmd_shard_map", lambda: jax.vmap(
    lambda x: jax.shard_map(lambda part: part * lax.psum(part.sum(), "y"), mesh=AUTO, in_specs=P("y"), out_specs=P("y"))(x),
    spmd_axis_name="x")(split((8, 4), "x", "y")))
program("spmd_shard_map_placed", lambda: jax.vmap(lambda x: jax.shard_map(jnp.sin, mesh=AUTO, in_specs=P("y"), out_specs=P("y"))(x),
                                                  spmd_axis_name="x")(split((8, 4))).sharding)
program("spmd_shard_map_used", lambda: jax.vmap(lambda x: jax.shard_map(jnp.sin, mesh=AUTO, in_specs=P("x"), out_specs=P("x"))(x),
                                                spmd_axis_name="x")(jnp.ones((8, 4))))
program("spmd_shard_map_used_by_result", lambda: jax.vmap(lambda x: jax.shard_map(
    lambda part: part[:1], mesh=AUTO, in_specs=P(), out_specs=P("x"), check_vma=False)(x), spmd_axis_name="x")(jnp.ones((8, 4))))
program("spmd_gradient", lambda: jax.vmap(jax.grad(lambda x: jax.shard_map(lambda part: lax.psum((part * part).sum(), "y"), mesh=AUTO,
                                                                           in_specs=P("y"), out_specs=P())(x)),
                                          spmd_axis_name="x")(split((8, 4), "x", "y")))
program("spmd_gradient_unchecked", lambda: jax.vmap(jax.grad(lambda w: jax.shard_map(
    lambda w: lax.psum(jnp.sin(w) * (lax.axis_index("y") + 1), "y"), mesh=AUTO, in_specs=P(), out_specs=P(), check_vma=False)(w)),
                                                    spmd_axis_name="x")(jnp.arange(8.0)))
program("spmd_scan", lambda: jax.vmap(lambda x: jax.shard_map(lambda part: lax.scan(lambda c, v: (c + v, c * v), 0.0 * part[0], part)[1],
                                                              mesh=AUTO, in_specs=P("y"), out_specs=P("y"))(x), spmd_axis_name="x")(
    jnp.arange(32.0).reshape(8, 4)))
program("spmd_typed_other", lambda: jax.vmap(jnp.sin, spmd_axis_name="y")(split((8, 4), "x", mesh=TYPED)))
program("spmd_typed_same", lambda: jax.typeof(jax.vmap(jnp.sin, spmd_axis_name="x")(split((8, 4), "x", mesh=TYPED))))

# ---- types of results that the compiler places, or under vmap ----
def typed(function, *arrays):
  with jax.set_mesh(TYPED):
    return jax.typeof(function(*arrays))


def whole_numbers(shape, *entries):
  return jax.device_put(jnp.zeros(shape, jnp.int32), NamedSharding(TYPED, P(*entries)))


program("vmap_asks_gather", lambda: typed(jax.vmap(lambda a, i: a.at[i].get(out_sharding=P("y", None))),
                                          split((4, 2, 3), "x", "y", mesh=TYPED), whole_numbers((4, 2, 2), "x", "y")))
program("vmap_asks_gradient", lambda: typed(lambda t, i: jax.vmap(jax.grad(lambda t, i: t.at[i].get(out_sharding=P("y")).mean()))(t, i),
                                            split((8, 16), "x", mesh=TYPED), whole_numbers((8, 4), "x")))
program("vmap_asks_conv", lambda: typed(jax.vmap(lambda x: lax.conv_general_dilated(
    x, jnp.ones((3, 2, 3)), (1,), "SAME", out_sharding=P(None, None, None))), split((8, 2, 2, 8), "x", mesh=TYPED)))
program("vmap_triangular_solve", lambda: typed(jax.vmap(lambda b: jax.scipy.linalg.solve_triangular(jnp.eye(4), b)), split(mesh=TYPED)))
program("vmap_triangular_solve_split", lambda: typed(jax.vmap(lambda b: jax.scipy.linalg.solve_triangular(jnp.eye(4), b)),
                                                     split((8, 4), "x", mesh=TYPED)))
program("argsort_typed", lambda: typed(lambda x: jnp.argsort(x, axis=0), split((8, 4), None, "y", mesh=TYPED)))
program("broadcast_like_typed", lambda: typed(lax.broadcast_like, jnp.ones(4), split((8, 4), "x", mesh=TYPED)))
program("rng_bits_asked", lambda: typed(lambda: lax.rng_bit_generator(np.array((1, 2, 3, 4), np.uint32), shape=(4, 8),
                                                                      out_sharding=P("x"))[1]))

# ---- arguments with another placement ----
program("in_shardings_other", lambda: jax.jit(jnp.sin, in_shardings=NamedSharding(AUTO, P("y")))(split((8, 4), "x")))
program("in_shardings_whole", lambda: jax.jit(jnp.sin, in_shardings=NamedSharding(AUTO, P()))(split((8, 4), "x")))
program("in_shardings_uncommitted", lambda: jax.jit(jnp.sin, in_shardings=NamedSharding(AUTO, P("x")))(jnp.ones((8, 4))).sharding)
program("in_shardings_one_device", lambda: jax.jit(jnp.sin, in_shardings=NamedSharding(AUTO, P("x")))(
    jax.device_put(jnp.ones((8, 4)), DEVICES[1])))
program("in_shardings_second", lambda: jax.jit(jnp.add, in_shardings=(None, NamedSharding(AUTO, P("y"))))(
    split((8, 4), "x"), split((8, 4), "x")))
program("in_shardings_typed", lambda: jax.jit(jnp.sin, in_shardings=NamedSharding(TYPED, P("y")))(split((8, 4), "x", mesh=TYPED)))

# ---- results under a mesh in context ----
for _kind, _mesh in (("auto", AUTO), ("typed", TYPED)):
  for _name, _function in (("arange", lambda: jnp.arange(8.0)), ("zeros", lambda: jnp.zeros((4, 2))), ("number", lambda: jnp.sin(3.0)),
                           ("jit", lambda: jax.jit(lambda x: x * 2)(np.arange(8.0, dtype=np.float32))),
                           ("jit_of_nothing", lambda: jax.jit(lambda: jnp.ones((2, 3)))()),
                           ("random", lambda: jax.random.normal(jax.random.key(0), (4,)))):
    program(f"context_{_kind}_{_name}", lambda function=_function: (function().sharding, function().committed), _mesh)

# ---- constraints inside a map ----
program("constraint_on_manual_axis", lambda: jax.jit(jax.shard_map(
    lambda x: lax.with_sharding_constraint(x, NamedSharding(AUTO, P("x"))),
    mesh=AUTO, in_specs=P("x"), out_specs=P("x"), check_vma=False))(jnp.ones((8, 4))))
program("map_over_abstract_mesh", lambda: jax.shard_map(jnp.sin, mesh=AUTO.abstract_mesh, in_specs=P("x"), out_specs=P("x"))(jnp.ones(8)))
program("map_over_other_abstract_mesh", lambda: jax.shard_map(jnp.sin, mesh=HALF, in_specs=P("x"), out_specs=P("x"))(split((8,), "x")))

# ---- custom_partitioning ----
ASKED = []


def product(rule="i j, j k -> i k", **words):
  from jax.experimental.custom_partitioning import custom_partitioning

  @custom_partitioning
  def f(x, y):
    return x @ y

  def partition(mesh, arg_shapes, result_shape):
    ASKED.append([str(one.sharding.spec) for one in (*arg_shapes, result_shape)])
    shardings = tuple(NamedSharding(mesh, P(*one.sharding.spec)) for one in arg_shapes)
    split_sum = shardings[0].spec[1]

    def local(x, y):
      return lax.psum(x @ y, split_sum) if split_sum else x @ y

    return mesh, local, result_shape.sharding, shardings

  f.def_partition(partition, sharding_rule=rule, **words)
  return f


program("custom_partition_rows", lambda: jax.jit(product())(split((8, 4), "x"), split((4, 8))))
program("custom_partition_both", lambda: jax.jit(product())(split((8, 4), "x"), split((4, 8), None, "y")).sharding)
program("custom_partition_eager", lambda: product()(jnp.ones((8, 4)), jnp.ones((4, 8))))
program("custom_partition_one_device", lambda: jax.jit(product())(jnp.ones((8, 4)), jnp.ones((4, 8))))
program("custom_partition_gradient", lambda: jax.grad(lambda x: jax.jit(product())(x, x).sum())(jnp.ones((4, 4))))
program("custom_partition_no_arrow", lambda: product("i j"))
program("custom_partition_brackets", lambda: product("i (j k -> i"))
program("custom_partition_ellipsis", lambda: product("i ... -> i"))
program("custom_partition_size", lambda: product("(i j) k, k l -> (i j) l", i="a"))
program("custom_partition_unknown_reduction", lambda: product("i j, j k -> i k", reduction_factors=("q",)))

if __name__ == "__main__":
  chosen = sys.argv[2:] or list(PROGRAMS)
  print(json.dumps({name: PROGRAMS[name]() for name in chosen}))
