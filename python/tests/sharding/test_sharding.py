"""Programs over eight devices of an XLA:CPU plugin give jax's results on its own eight."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from xla_cpu_plugin import needs_plugin, plugin

pytest.importorskip("capibara._core", reason="the Python extension is not built")
pytest.importorskip("jax")
PROGRAMS = pathlib.Path(__file__).with_name("sharding_programs.py")
NAMES = [name for name in re.findall(r"^def (\w+)\(\):", PROGRAMS.read_text(), re.MULTILINE)]


@functools.cache
def answers(who):
  environment = dict(os.environ, CAPIBARA_PLUGIN=plugin() or "")
  if who == "jax":
    environment |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
  else:
    environment |= {"JAX_PLATFORMS": "xla_cpu", "JAX_NUM_CPU_DEVICES": "8"}
  done = subprocess.run([sys.executable, str(PROGRAMS), who], capture_output=True, text=True, timeout=300, env=environment)
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  # The device's name is the only intended difference.
  return json.loads(done.stdout.splitlines()[-1].replace("PluginDevice", "CpuDevice"))


@needs_plugin
@pytest.mark.parametrize("name", NAMES)
def test_is_as_in_jax(name):
  assert answers("capibara")[name] == answers("jax")[name]
