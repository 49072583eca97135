"""Files of jax.export in both directions: we read jax's files and compute its values, and jax reads and runs ours."""
import collections
import contextlib
import os
import pathlib
import subprocess
import sys

import jax as oracle
import jax.export as oracle_export
import numpy as np
import pytest
from exported_functions import FUNCTIONS, KEY

import capibara.jax as jax
from capibara import _core
from capibara.jax import export

# The vectors are unique only up to signs, or up to a choice among equals.
UP_TO_SIGN = {"qr", "eigh", "svd"}
UNCHECKED = oracle_export.DisabledSafetyCheck.custom_call


def arguments(library, args):
  return [library.random.key(3) if arg is KEY else arg for arg in args]


def plain(library, values):
  leaves = library.tree.leaves(values)
  return [np.asarray(library.random.key_data(x)) if "key" in str(x.dtype) else np.asarray(x) for x in leaves]


def wide(values):
  return values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)


def assert_close(name, got, expected):
  assert len(got) == len(expected)
  for ours, theirs in zip(got, expected):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    ours, theirs = wide(ours), wide(theirs)
    if name in UP_TO_SIGN:
      ours, theirs = abs(ours), abs(theirs)
    # float8 and float16 have few bits: the last one may differ where sums are rounded.
    np.testing.assert_allclose(ours, theirs, rtol=1e-2 if "float8" in name or "16" in name else 2e-4, atol=2e-5)


@contextlib.contextmanager
def on_reference():
  before = _core.platform()
  _core.set_platform("reference")
  try:
    yield
  finally:
    _core.set_platform(before)


def exported_by_jax(name):
  builder, args = FUNCTIONS[name]
  function, args = oracle.jit(builder(oracle)), arguments(oracle, args)
  checks = [UNCHECKED("ApproxTopK")] if name == "approx_max_k" else []
  return oracle_export.export(function, disabled_checks=checks)(*args), plain(oracle, function(*args))


@pytest.mark.wide
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ours_reads_what_jax_wrote(name):
  exported, expected = exported_by_jax(name)
  blob = exported.serialize()
  read, again = export.deserialize(blob), oracle_export.deserialize(blob)
  assert str(read.in_avals) == str(again.in_avals) and str(read.out_avals) == str(again.out_avals)
  assert read.platforms == exported.platforms and read.module_kept_var_idx == exported.module_kept_var_idx
  args = arguments(jax, FUNCTIONS[name][1])
  assert_close(name, plain(jax, read.call(*args)), expected)
  with on_reference():
    assert_close(name, plain(jax, read.call(*args)), expected)


@pytest.mark.wide
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jax_reads_what_ours_wrote(name):
  builder, args = FUNCTIONS[name]
  own = export.export(jax.jit(builder(jax)))(*arguments(jax, args))
  read = oracle_export.deserialize(own.serialize())
  assert str(read.in_avals).replace(", weak_type=True", "") == str(own.in_avals).replace(", weak_type=True", "")
  assert str(read.in_tree) == str(own.in_tree) and read.fun_name == own.fun_name and read.module_kept_var_idx == own.module_kept_var_idx
  assert_close(name, plain(oracle, read.call(*arguments(oracle, args))), plain(jax, own.call(*arguments(jax, args))))


# ---- derivatives, platforms, devices, donation ---------------------------------------------------------------------------

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 7


def loss(jax):
  return lambda w, x: jax.numpy.tanh(x @ w["w"] + w["b"]).sum()


WEIGHTS = {"b": np.float32(0.3), "w": np.ones((3, 4), np.float32)}


@pytest.mark.parametrize("writer, reader", [(oracle, export), (jax, oracle_export)], ids=["jax to ours", "ours to jax"])
def test_derivatives_are_kept(writer, reader):
  write, library = (oracle_export, jax) if writer is oracle else (export, oracle)
  exported = write.export(writer.jit(loss(writer)))(WEIGHTS, X)
  read = reader.deserialize(exported.serialize(vjp_order=2))
  got = library.grad(lambda w: read.call(w, X))(WEIGHTS)
  expected = oracle.grad(lambda w: loss(oracle)(w, X))(WEIGHTS)
  assert_close("", plain(library, got), plain(oracle, expected))
  second = library.grad(lambda x: library.grad(lambda v: read.call(WEIGHTS, v))(x).sum())(X)
  expected = oracle.grad(lambda x: oracle.grad(lambda v: loss(oracle)(WEIGHTS, v))(x).sum())(X)
  assert_close("", plain(library, second), plain(oracle, expected))


def test_several_platforms_in_both_directions():
  def function(library):
    return lambda x, y: library.numpy.sin(y) + 1

  platforms = ("cuda", "cpu", "tpu")
  theirs = export.deserialize(oracle_export.export(oracle.jit(function(oracle)), platforms=platforms)(X, X).serialize())
  ours = oracle_export.deserialize(export.export(jax.jit(function(jax)), platforms=platforms)(X, X).serialize())
  assert theirs.platforms == ours.platforms == platforms and theirs.uses_global_constants and ours.uses_global_constants
  assert theirs.module_kept_var_idx == ours.module_kept_var_idx == (1,)
  assert_close("", plain(jax, theirs.call(X, X)), [np.sin(X) + 1])
  assert_close("", plain(oracle, ours.call(X, X)), [np.sin(X) + 1])


def test_code_of_the_platform_at_hand_is_run():
  def function(x):
    return oracle.lax.platform_dependent(x, cpu=lambda x: x * 2, tpu=lambda x: x * 3, default=lambda x: x * 5)
  blob = oracle_export.export(oracle.jit(function), platforms=("tpu", "cpu"))(X).serialize()
  np.testing.assert_array_equal(export.deserialize(blob).call(X), X * 2)


def test_another_platform_is_refused():
  read = export.deserialize(oracle_export.export(oracle.jit(lambda x: x + 1), platforms=("tpu",))(X).serialize())
  with pytest.raises(ValueError, match="was exported for platforms '\\('tpu',\\)' but it is used on"):
    read.call(X)


def test_tokens_of_ordered_effects_and_donated_arguments_are_read():
  blob = oracle_export.export(oracle.jit(lambda x, y: (x + y, y * 2), donate_argnums=0))(X, X).serialize()
  assert_close("", plain(jax, export.deserialize(blob).call(X, X)), [X + X, X * 2])


VALUES = np.arange(128, dtype=np.float32).reshape(16, 8)
MAPS = {"psum": lambda x: oracle.lax.psum(x, "a"), "all_gather": lambda x: oracle.lax.all_gather(x, "a", tiled=True),
        "ppermute": lambda x: oracle.lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)]),
        "psum_scatter": lambda x: oracle.lax.psum_scatter(x, "a", tiled=True),
        "all_to_all": lambda x: oracle.lax.all_to_all(x, "a", 1, 0, tiled=True), "axis_index": lambda x: x + oracle.lax.axis_index("b")}


def export_maps(folder):
  """Writes the maps and their values; runs in a separate process with eight devices."""
  mesh = oracle.sharding.Mesh(np.array(oracle.devices()).reshape(4, 2), ("a", "b"))
  split, whole = oracle.sharding.PartitionSpec("a"), oracle.sharding.PartitionSpec()
  for name, body in MAPS.items():
    ins, outs = ((oracle.sharding.PartitionSpec("a", "b"),) * 2 if name == "axis_index" else
                 (split, whole if name in ("psum", "all_gather") else split))
    function = oracle.jit(oracle.shard_map(body, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False),
                          in_shardings=oracle.sharding.NamedSharding(mesh, ins))
    (folder / f"{name}.exported").write_bytes(oracle_export.export(function)(VALUES).serialize())
    np.save(folder / f"{name}.npy", function(VALUES))


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
  folder = tmp_path_factory.mktemp("maps")
  flags = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_PLATFORMS="cpu")
  subprocess.run([sys.executable, "-c", f"import pathlib, test_export_of_jax as t; t.export_maps(pathlib.Path({str(folder)!r}))"],
                 check=True, env=flags | {"PYTHONPATH": os.pathsep.join(sys.path)}, cwd=pathlib.Path(__file__).parent)
  return folder


@pytest.mark.parametrize("name", MAPS)
def test_maps_over_eight_devices_are_read(name, maps):
  blob = (maps / f"{name}.exported").read_bytes()
  read, theirs = export.deserialize(blob), oracle_export.deserialize(bytearray(blob))
  assert read.nr_devices == theirs.nr_devices == 8
  for scope in (contextlib.nullcontext, on_reference):
    with scope():
      assert_close(name, plain(jax, read.call(VALUES)), [np.load(maps / f"{name}.npy")])
  # The rewritten file has the same devices and shardings.
  again = oracle_export.deserialize(read.serialize())
  assert again.nr_devices == 8 and str(again._in_named_shardings) == str(theirs._in_named_shardings)


def test_files_of_our_older_format_are_refused():
  with pytest.raises(ValueError, match="of an older version of this library"):
    export.deserialize(b"capibara exported program 1\n{}\n")


def test_registered_classes_keep_their_names():
  name = "test_export_of_jax.Pair"
  Pair = collections.namedtuple("Pair", "first second")
  export.register_namedtuple_serialization(Pair, serialized_name=name)
  oracle_export.register_namedtuple_serialization(Pair, serialized_name=name)
  read = oracle_export.deserialize(export.export(jax.jit(lambda p: Pair(p.second, p.first)))(Pair(X, X + 1)).serialize())
  got = read.call(Pair(X, X + 1))
  assert isinstance(got, Pair)
  np.testing.assert_array_equal(got.first, X + 1)
