"""Programs under Explicit axes: values, types, texts and errors as jax has them with its own eight devices."""
import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
HERE = pathlib.Path(__file__).parent
RECORDED = json.loads(HERE.joinpath("explicit_answers.json").read_text())


@functools.cache
def answers(platform="cpu"):
  environment = dict(os.environ, JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS=platform)
  environment.pop("XLA_FLAGS", None)
  command = [sys.executable, str(HERE / "explicit_programs.py"), "capibara"]
  done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return json.loads(done.stdout.splitlines()[-1])


def close(own, other):
  """Numbers agree to the digits that both print, all else exactly."""
  if isinstance(own, list) and isinstance(other, list):
    return len(own) == len(other) and all(close(a, b) for a, b in zip(own, other))
  if isinstance(own, float) and isinstance(other, float):
    return abs(own - other) <= 2e-4 * max(1.0, abs(other)) or own != own and other != other
  return own == other


@pytest.mark.parametrize("name", RECORDED)
def test_answers_as_jax(name):
  assert close(answers()[name], RECORDED[name])


def test_the_plain_loops_answer_the_same():
  """The reference backend is the truth of the compiled programs."""
  differing = [name for name in RECORDED if not close(answers("reference")[name], answers()[name])]
  assert not differing
