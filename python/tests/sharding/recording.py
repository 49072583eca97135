"""Answers of programs over eight devices: jax's, which a script records in tests/data, and capibara's, which tests compare with them."""
import functools
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[2] / "tests" / "data"))

import recordings  # noqa: E402


def jax_answers(programs, names, tries=3):
  """One process runs many programs; if it dies or takes too long, its programs are split between two: jax's threads can crash a
  process with eight devices on few cores."""
  environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_PLATFORMS="cpu")
  for _ in range(tries if len(names) == 1 else 1):
    try:
      done = subprocess.run([sys.executable, str(HERE / programs), "jax", *names], capture_output=True, text=True, env=environment,
                            timeout=60 + 10 * len(names))
    except subprocess.TimeoutExpired:
      continue
    if done.returncode == 0:
      return json.loads(done.stdout.splitlines()[-1])
  if len(names) == 1:
    raise SystemExit(f"jax does not answer to {names[0]}")
  half = len(names) // 2
  return jax_answers(programs, names[:half]) | jax_answers(programs, names[half:])


def record(programs, names, name):
  """Writes jax's answers as a recording, one line for each program."""
  lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in jax_answers(programs, names).items())
  recordings.write(recordings.path(name), "{\n" + lines + "\n}\n")


def recorded(name):
  return json.loads(recordings.read(name))


@functools.cache
def answers(programs, platform="cpu", plugin=None):
  """Capibara's answers, on eight devices of a platform."""
  environment = dict(os.environ, JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS=platform)
  if plugin:
    environment["CAPIBARA_PLUGIN"] = plugin
  environment.pop("XLA_FLAGS", None)
  done = subprocess.run([sys.executable, str(HERE / programs), "capibara"], capture_output=True, text=True, timeout=600, env=environment)
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return json.loads(done.stdout.splitlines()[-1])


def close(own, other):
  """True if numbers agree to the digits that both print and everything else is equal."""
  if isinstance(own, list) and isinstance(other, list):
    return len(own) == len(other) and all(close(a, b) for a, b in zip(own, other))
  if isinstance(own, float) and isinstance(other, float):
    return abs(own - other) <= 2e-4 * max(1.0, abs(other)) or own != own and other != other
  return own == other
