"""jax.config has every setting of jax 0.10.2: those without a meaning here are stored, checked and warned about once."""
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
peer = pytest.importorskip("jax")
import capibara.jax as jax
from capibara.jax._flags import WITHOUT_EFFECT

OTHERWISE = {  # settings with a different default here, or a different form of it
  "jax_num_cpu_devices": 1, "jax_platform_name": None,
}


def plain(value):
  value = getattr(value, "value", value) if not isinstance(value, bool) else value
  return value


def test_every_setting_of_jax_is_known_with_its_default():
  ours = jax.config.values
  for name, value in peer.config.values.items():
    assert name in ours, name
    if name in OTHERWISE or os.environ.get(name.upper()):
      continue
    expected = getattr(value, "name", value).lower() if name == "jax_explicit_x64_dtypes" else plain(value)
    assert ours[name] == expected, name


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_a_setting_without_effect_is_kept_and_warns_once(name):
  default, kind = WITHOUT_EFFECT[name]
  other = next(text for text in kind if text != default) if isinstance(kind, tuple) else \
      not default if kind is bool else "text" if kind is str else kind(7)
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    jax.config.update(name, default)
    jax.config.update(name, other)
    jax.config.update(name, other)
  assert getattr(jax.config, name) == other == jax.config.read(name)
  assert [name in str(warning.message) for warning in caught] == [True]
  jax.config.update(name, default)


def test_values_that_a_setting_cannot_have_are_refused():
  for name, value in (("jax_use_magma", "maybe"), ("jax_allow_f16_reductions", 3), ("jax_pgle_profiling_runs", "x"),
                      ("jax_optimization_level", "O9"), ("jax_default_device", 3)):
    with pytest.raises((ValueError, TypeError)):
      jax.config.update(name, value)
  with pytest.raises(AttributeError):
    jax.config.update("jax_no_such_setting", 1)


def test_the_environment_sets_settings():
  code = "import capibara.jax as jax; print(jax.config.jax_pgle_profiling_runs, jax.config.jax_enable_x64, jax.config.x64_enabled, jax.config.jax_optimization_level)"
  done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120,
                        env=dict(os.environ, JAX_PGLE_PROFILING_RUNS="5", JAX_ENABLE_X64="1", JAX_OPTIMIZATION_LEVEL="O0"))
  assert done.stdout.split() == ["5", "True", "True", "O0"], done.stderr


def test_cache_misses_are_explained(caplog):
  import numpy as np

  @jax.jit
  def f(x, y):
    return x

  with jax.explain_cache_misses(True), caplog.at_level("WARNING"):
    f(np.float32(0), np.arange(1, dtype=np.float32))
    f(np.float32(0), np.arange(1, dtype=np.float32))
    f(np.float32(0), np.arange(2, dtype=np.float32))
    f(0.0, np.arange(2, dtype=np.float32))
    f(0.0, (1, 2))
    with jax.numpy_rank_promotion("warn"):
      f(0.0, (1, 2))
    for _ in range(2):
      jax.jit(lambda x: 2 * x)(3)
  texts = [record.getMessage() for record in caplog.records]
  assert len(texts) == 7 and all("TRACING CACHE MISS" in text for text in texts)
  for text, expected in zip(texts, ["never seen function", "at y, now f32[2] and before f32[1]", "now f32[]{weak_type=True} and before f32[]{weak_type=False}",
                                    "different input pytree", "now warn and before allow", "never seen function", "another function defined on the same line"]):
    assert expected in text, text


def test_the_level_of_optimisation_reaches_the_compiler():
  f = jax.jit(lambda x: jax.numpy.sin(x) * 2)
  jax.config.update("jax_optimization_level", "O0")
  try:
    assert float(f(0.0)) == 0.0
  finally:
    jax.config.update("jax_optimization_level", "UNKNOWN")


def test_the_disk_cache_is_where_the_settings_say(tmp_path):
  from capibara import _core
  folder = tmp_path / "cache"
  before = _core.disk_cache_folder()
  try:
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.jit(lambda x: jax.numpy.cos(x) * 123.25)(jax.numpy.ones(7)).block_until_ready()
    assert _core.platform() == "reference" or any(folder.iterdir())
    jax.config.update("jax_enable_compilation_cache", False)
    assert _core.disk_cache_folder() == ""
  finally:
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", None)
  assert _core.disk_cache_folder() == before


@pytest.mark.parametrize("make", [lambda jnp: jnp.array([1.0, np.nan]), lambda jnp: jnp.asarray(np.nan), lambda jnp: jnp.float32(np.nan),
                                  lambda jnp: jnp.array(np.array([np.nan], np.float32))])
def test_debug_nans_looks_at_numbers_that_become_arrays(make):
  for module in (jax, peer):
    with module.debug_nans(True), pytest.raises(FloatingPointError, match="invalid value \\(nan\\)"):
      make(module.numpy)
  with jax.debug_nans(True):
    assert jax.numpy.array([1.0, np.inf]).shape == (2,)
  with jax.debug_infs(True), pytest.raises(FloatingPointError, match="invalid value \\(inf\\)"):
    jax.numpy.array([1.0, np.inf])
  assert np.isnan(make(jax.numpy)).any()
