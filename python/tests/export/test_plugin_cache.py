"""The plugin's compiled programs on disk: damaged, swapped, and in rejected folders."""
import os
import subprocess
import sys
import textwrap

import pytest
from xla_cpu_plugin import needs_plugin, plugin

pytest.importorskip("capibara._core", reason="the Python extension is not built")

PROGRAM = """
    import capibara.jax as jax
    import capibara.jax.numpy as jnp
    x = jnp.arange(12.0).reshape(3, 4)
    print(float(jax.jit(lambda v: (v @ v.T).sum() + jnp.tanh(v).max())(x)))
    """


def run(folder):
  environment = dict(os.environ, CAPIBARA_PLUGIN=plugin(), JAX_PLATFORMS="xla_cpu", CAPIBARA_CACHE=str(folder))
  done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=120, env=environment)
  assert done.returncode == 0, done.stdout + done.stderr
  return float(done.stdout)


def damaged(content, how):
  if how == "cut":
    return content[:len(content) // 2]
  if how == "empty":
    return b""
  if how == "noise":
    return bytes(range(256)) * 8
  return bytes(byte ^ 0x55 if 100 < place < 140 else byte for place, byte in enumerate(content))


@needs_plugin
@pytest.mark.parametrize("how", ["cut", "empty", "noise", "changed"])
def test_a_damaged_file_is_compiled_again(tmp_path, how):
  expected = run(tmp_path)
  files = [path for path in tmp_path.rglob("*") if path.is_file()]
  assert files
  for path in files:
    path.write_bytes(damaged(path.read_bytes(), how))
  assert run(tmp_path) == expected
  assert run(tmp_path) == expected


@needs_plugin
def test_an_entry_runs_under_its_own_key_only(tmp_path):
  expected = run(tmp_path)
  files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
  contents = [path.read_bytes() for path in files]
  assert len(set(contents)) > 1
  for path, content in zip(files, contents[1:] + contents[:1]):
    path.write_bytes(content)
  assert run(tmp_path) == expected


@needs_plugin
def test_a_folder_that_others_may_write_is_refused_with_a_warning(tmp_path):
  folder = tmp_path / "open"
  folder.mkdir()
  folder.chmod(0o777)
  environment = dict(os.environ, CAPIBARA_PLUGIN=plugin(), JAX_PLATFORMS="xla_cpu", CAPIBARA_CACHE=str(folder))
  done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=120, env=environment)
  assert done.returncode == 0, done.stderr
  assert "is not used: its mode is 0777, expected 0700" in done.stderr
  assert not list(folder.iterdir())
