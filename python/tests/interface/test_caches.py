"""Functions are traced as often as in jax: once for a function and its types, again after clear_caches."""
import functools
import json
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
pytest.importorskip("jax")
PROGRAMS = pathlib.Path(__file__).with_name("trace_counts.py")
NAMES = [name for name in re.findall(r"^def (\w+)\(\):", PROGRAMS.read_text(), re.MULTILINE)]


@functools.cache
def answers(who):
  done = subprocess.run([sys.executable, str(PROGRAMS), who], capture_output=True, text=True, timeout=300)
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", NAMES)
def test_is_as_in_jax(name):
  assert answers("capibara")[name] == answers("jax")[name]
