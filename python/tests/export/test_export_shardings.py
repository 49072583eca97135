"""Exported programs of several devices, and what export refuses: capibara's answers beside jax's, each in a process with eight devices."""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

if __name__ == "__main__":
  if sys.argv[1] == "capibara":
    import capibara.jax
    capibara.jax.install()
  import collections

  import jax
  import jax.numpy as jnp
  import numpy as np
  from jax import core, export
  from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec as P

  FOLDER = pathlib.Path(sys.argv[2])
  A = np.arange(64, dtype=np.float32).reshape(16, 4)
  MESH, REVERSED = Mesh(jax.devices()[:2], "d"), Mesh(jax.devices()[:2][::-1], "d")
  ROWS, COLUMNS = NamedSharding(MESH, P("d", None)), NamedSharding(MESH, P(None, "d"))

  def message(call):
    """The error of a call, or that there was none."""
    try:
      call()
    except Exception as error:
      return f"{type(error).__name__}: {error}".strip()
    return "no error"

  def both(exported, **options):
    return exported, export.deserialize(exported.serialize(**options))

  def turned(**shardings):
    return export.export(jax.jit(lambda x: x.T * x.T, **shardings))(A)

  def shardings_are_stated():
    found = []
    for shardings in ({}, {"in_shardings": ROWS}, {"out_shardings": COLUMNS}, {"in_shardings": COLUMNS, "out_shardings": ROWS}):
      for exported in both(turned(**shardings), vjp_order=2):
        for one in (exported, exported.vjp()):
          found.append([one.nr_devices, str(one.in_shardings_jax(MESH)), str(one.out_shardings_jax(MESH))])
        found.append(exported.vjp().vjp().nr_devices)
    return found

  def abstract_and_explicit_meshes_are_stated():
    found = []
    rows = NamedSharding(AbstractMesh((2,), ("d",)), P("d", None))
    exported = export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct(A.shape, A.dtype, sharding=rows))
    found += [str(one.in_shardings_jax(MESH)) for one in both(exported)]
    with jax.set_mesh(jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)):
      x = jax.device_put(A, P("x", None))
      for one in both(export.export(jax.jit(lambda x: x * 2))(x)):
        found += [str(one.in_avals[0].sharding.spec), str(one.call(x).sharding), np.asarray(one.call(x)).tolist()]
    return found

  def calls_place_arguments_and_results():
    found = []
    for exported in both(turned(in_shardings=ROWS, out_shardings=COLUMNS)):
      for mesh in (MESH, REVERSED):
        for spec in (P("d"), P()):
          result = exported.call(jax.device_put(A, NamedSharding(mesh, spec)))
          found.append([[shard.device.id, str(shard.index), np.asarray(shard.data).tolist()] for shard in result.addressable_shards])
    return found

  def constraints_inside_are_kept():
    exported = export.export(jax.jit(lambda x: jax.lax.with_sharding_constraint(x @ x.T, COLUMNS)))(A)
    results = [one.call(jax.device_put(A, ROWS)) for one in both(exported)]
    return [[str(shard.index) for shard in result.addressable_shards] for result in results]

  def types_of_any_size_are_lowered():
    lowered = jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((1 << 20, 1 << 20), np.float32))
    return "tensor<1048576x1048576xf32>" in lowered.as_text()

  def other_numbers_of_devices_are_refused():
    on_four = jax.device_put(A, NamedSharding(Mesh(jax.devices()[:4], "q"), P("q")))
    exported = turned(in_shardings=ROWS)
    return [message(lambda: one.call(given)) for one in both(exported) for given in (A, on_four)] + [
        message(lambda: turned().call(on_four)), message(lambda: exported.in_shardings_jax(Mesh(jax.devices()[:2], "other")))]

  def devices_in_another_order_have_derivatives():
    on_reversed = NamedSharding(REVERSED, P("d"))
    exported = export.export(jax.jit(lambda x: jnp.sum(x * x), in_shardings=on_reversed))(A)
    return [np.asarray(jax.grad(one.call)(jax.device_put(A, on_reversed))).tolist() for one in both(exported, vjp_order=1)]

  def conventions_are_checked():
    found = []
    for version in (8, 9, 10, 11):
      jax.config.update("jax_export_calling_convention_version", version)
      found += [message(turned)] + ([one.calling_convention_version for one in both(turned())] if version in (9, 10) else [])
    jax.config.update("jax_export_calling_convention_version", 10)
    return found

  def donation_is_for_all_platforms():
    function = jax.jit(jnp.sin, donate_argnums=0)
    return [message(lambda: export.export(function, platforms=names)(A)) for names in (["cpu", "tpu", "other"], ["cpu", "tpu"], ["other"])]

  def custom_calls_need_a_disabled_check():
    function = jax.jit(lambda x: jax.ffi.ffi_call("some_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    check = export.DisabledSafetyCheck
    symbolic = jax.ShapeDtypeStruct(export.symbolic_shape("a, 4"), np.float32)
    return [message(lambda: export.export(function, disabled_checks=checks)(kind)).split(".")[0] for kind in (A, symbolic)
            for checks in ([], [check.custom_call("some_target")], [check.custom_call("other")], [check.custom_call("ALL")])] + [
                message(lambda: export.export(jax.jit(jnp.linalg.cholesky))(np.eye(3, dtype=np.float32)))]

  def keys_are_strings():
    trees = ({1: A}, collections.OrderedDict({1: A}))
    return [message(export.export(jax.jit(lambda x: x[1]))(tree).serialize) for tree in trees]

  def objects_of_classes_are_not_built_without_values():
    @jax.tree_util.register_pytree_node_class
    class Described:
      def __init__(self, array, words):
        assert array.shape[0] == len(words)
        self.array, self.words = array, words

      def tree_flatten(self):
        return (self.array,), self.words

      @classmethod
      def tree_unflatten(cls, words, children):
        return cls(children[0], words)
    export.register_pytree_node_serialization(
        Described, serialized_name="Described", serialize_auxdata=lambda words: "/".join(words).encode(),
        deserialize_auxdata=lambda data: tuple(data.decode().split("/")))
    value = {"b": Described(np.ones(2, np.float32), ("u", "v")), "a": Described(np.ones(1, np.float32), ("w",))}
    exported, read = both(export.export(jax.jit(lambda x: [x, x["b"]]))(value))
    return [read.in_tree == exported.in_tree, read.out_tree == exported.out_tree, [one.words for one in read.call(value)[0].values()]]

  def unregistered_classes_are_refused():
    pair = collections.namedtuple("pair", "a b")
    found = message(lambda: export.register_pytree_node_serialization(
        pair, serialized_name="pair", serialize_auxdata=lambda x: b"", deserialize_auxdata=lambda data: None))
    return found.split(",")[0]

  def nested_calls_hold_for_all_sizes():
    found = []
    for inner, outer in (("3,4,5*a", "3,4,c"), ("3,a,a+b", "3,4,c"), ("3,a,a+b", "3,c,c"), ("3,a,a", "3,4,c"), ("3,a,b", "3,4,c"),
                         ("3,4,3*a", "3,4,6*c"), ("3,a,a+8", "3,c+2,c+10"), ("3,a,a+b", "c,4,12"), ("3,a,a", "3,4,12")):
      called = export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct(export.symbolic_shape(inner), np.float32))
      kind = jax.ShapeDtypeStruct(export.symbolic_shape(outer), np.float32)
      found.append(message(lambda: export.export(jax.jit(lambda x: called.call(x) * 2))(kind)))
    return found

  def unsolvable_sizes_are_refused():
    kind = jax.ShapeDtypeStruct(export.symbolic_shape("(2 * a + b, a, c * c)"), np.float32)
    return message(lambda: export.export(jax.jit(lambda x: 0.0))(kind).serialize())

  def extrema_of_sizes():
    a, b = export.symbolic_shape("a, b")
    found = core.max_dim(a - 5, 0), core.min_dim(a, b), core.max_dim(a + b, a), core.min_dim(a, 0), core.max_dim(2, 3)
    return [str(size) for size in found]

  def rules_build_operations():
    from jax.extend.core import Primitive
    from jax.extend.mlir.dialects import stablehlo
    from jax.interpreters import mlir
    times = Primitive("times")
    times.def_abstract_eval(lambda x: x)
    mlir.register_lowering(times, lambda ctx, x: [stablehlo.add(x, x)], "cpu")
    mlir.register_lowering(times, lambda ctx, x: [stablehlo.multiply(stablehlo.cosine(x), x)], "tpu")
    exported = export.export(jax.jit(times.bind), platforms=["cpu", "tpu"])(A)
    replaced = export.export(jax.jit(lambda x: jax.jit(jnp.sin)(x) + 1), _override_lowering_rules=(
        (jax.lax.sin_p, lambda ctx, x, **_: [stablehlo.cosine(x)]),))(A)
    return [np.asarray(exported.call(A)).tolist(), "cosine" in exported.mlir_module(), "stablehlo.sine" in replaced.mlir_module(),
            np.round(np.asarray(replaced.call(A)), 4).tolist()]

  def files_are_written_for_the_other():
    (FOLDER / sys.argv[1]).write_bytes(turned(in_shardings=ROWS, out_shardings=COLUMNS).serialize(vjp_order=1))
    return 0

  def files_of_the_other_are_read():
    found = []
    for who in sorted(path.name for path in FOLDER.iterdir()):
      read = export.deserialize(bytearray((FOLDER / who).read_bytes()))
      result = read.call(jax.device_put(A, NamedSharding(REVERSED, P())))
      found.append([read.nr_devices, str(read.in_shardings_jax(MESH)), str(read.vjp().out_shardings_jax(MESH)),
                    [[shard.device.id, str(shard.index)] for shard in result.addressable_shards], np.asarray(result).tolist()])
    return found

  print(json.dumps({name: globals()[name]() for name in sys.argv[3:]}))
  sys.exit()

pytest.importorskip("jax")
PROGRAMS = [name.split("(")[0] for name in pathlib.Path(__file__).read_text().split("  def ")[1:] if name.split(")")[0].endswith("(")]
EXCHANGE = ["files_are_written_for_the_other", "files_of_the_other_are_read"]


def run(who, folder, *names):
  environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu")
  environment.pop("XLA_FLAGS" if who == "capibara" else "JAX_NUM_CPU_DEVICES")
  done = subprocess.run([sys.executable, __file__, who, str(folder), *names], capture_output=True, text=True, timeout=300, env=environment)
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return json.loads(done.stdout.splitlines()[-1])


@functools.cache
def answers(who):
  with tempfile.TemporaryDirectory() as folder:
    return run(who, folder, *(name for name in PROGRAMS if name not in EXCHANGE))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in EXCHANGE])
def test_is_as_in_jax(name):
  assert answers("capibara")[name] == answers("jax")[name]


def test_files_are_read_in_both_directions(tmp_path):
  for who in ("jax", "capibara"):
    run(who, tmp_path, EXCHANGE[0])
  assert run("capibara", tmp_path, EXCHANGE[1]) == run("jax", tmp_path, EXCHANGE[1])
