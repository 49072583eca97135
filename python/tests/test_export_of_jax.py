"""Files of jax.export in both directions: ours reads what jax wrote and computes its values, and jax reads and runs what ours wrote."""
import contextlib
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax as oracle  # noqa: E402
import jax.export as oracle_export  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from exported_functions import FUNCTIONS, KEY  # noqa: E402

import capibara.jax as jax  # noqa: E402
from capibara import _core  # noqa: E402
from capibara.jax import export  # noqa: E402

# The vectors are unique up to signs, or there is a choice of equal ones.
UP_TO_SIGN = {"qr", "eigh", "svd"}
UNCHECKED = oracle_export.DisabledSafetyCheck.custom_call


def arguments(library, args):
  return [library.random.key(3) if arg is KEY else arg for arg in args]


def plain(library, values):
  leaves = library.tree.leaves(values)
  return [np.asarray(library.random.key_data(x)) if "key" in str(x.dtype) else np.asarray(x) for x in leaves]


def wide(values):
  return values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)


def assert_close(name, got, wanted):
  assert len(got) == len(wanted)
  for ours, theirs in zip(got, wanted):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    ours, theirs = wide(ours), wide(theirs)
    if name in UP_TO_SIGN:
      ours, theirs = abs(ours), abs(theirs)
    # float8 and float16 have few bits: their last one may differ where sums are rounded.
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
  exported, wanted = exported_by_jax(name)
  blob = exported.serialize()
  read, again = export.deserialize(blob), oracle_export.deserialize(blob)
  assert str(read.in_avals) == str(again.in_avals) and str(read.out_avals) == str(again.out_avals)
  assert read.platforms == exported.platforms and read.module_kept_var_idx == exported.module_kept_var_idx
  args = arguments(jax, FUNCTIONS[name][1])
  assert_close(name, plain(jax, read.call(*args)), wanted)
  with on_reference():
    assert_close(name, plain(jax, read.call(*args)), wanted)


@pytest.mark.wide
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jax_reads_what_ours_wrote(name):
  builder, args = FUNCTIONS[name]
  own = export.export(jax.jit(builder(jax)))(*arguments(jax, args))
  read = oracle_export.deserialize(own.serialize())
  assert str(read.in_avals).replace(", weak_type=True", "") == str(own.in_avals).replace(", weak_type=True", "")
  assert str(read.in_tree) == str(own.in_tree) and read.fun_name == own.fun_name and read.module_kept_var_idx == own.module_kept_var_idx
  assert_close(name, plain(oracle, read.call(*arguments(oracle, args))), plain(jax, own.call(*arguments(jax, args))))
