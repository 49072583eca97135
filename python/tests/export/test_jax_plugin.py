"""Unmodified JAX on capibara's PJRT plugin: values as on XLA:CPU in the same process, errors, devices, and behaviour in a user's shell."""
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE / "jax_plugin_programs.py"
BUILD = pathlib.Path(os.environ.get("CAPIBARA_BUILD", HERE.parents[2] / "build" / "release"))

pytestmark = pytest.mark.skipif(not (BUILD / "lib" / "libcapibara_pjrt.so").exists(), reason="the plugin is not built")


def environment(**changes):
  env = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "CAPIBARA_AS"))}
  env["PYTHONPATH"] = os.pathsep.join([str(BUILD / "python"), str(HERE)])
  return env | changes


def python(code, timeout=300, **changes):
  return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env=environment(**changes))


ASKED = {"JAX_PLATFORMS": "capibara"}
SETTINGS = {"one": ASKED, "callbacks": ASKED, "families": ASKED, "devices": ASKED | {"JAX_NUM_CPU_DEVICES": "8"},
            "as_cpu": {"JAX_PLATFORMS": "cpu", "CAPIBARA_AS_CPU": "1"}}


@functools.cache
def answers(group):
  done = subprocess.run([sys.executable, str(PROGRAMS), group], capture_output=True, text=True, timeout=1200,
                        env=environment(**SETTINGS[group]))
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return json.loads(done.stdout.splitlines()[-1])


def names(group):
  return re.findall(rf'@program\("{group}"\)\ndef (\w+)', PROGRAMS.read_text())


@pytest.mark.parametrize("group, name", [(group, name) for group in SETTINGS for name in names(group)])
def test_programs(group, name):
  assert answers(group)[name] == ""


def test_every_family_of_lax():
  failed = {name: text.splitlines()[-1] for name, text in answers("families").items() if text}
  assert len(answers("families")) >= 150 and not failed, failed


def test_other_platforms_are_left_alone():
  done = python("import jax; print(jax.devices(), [n for n in jax._src.xla_bridge._backend_factories])", JAX_PLATFORMS="cpu")
  assert done.returncode == 0 and "capibara" not in done.stdout and "apibara" not in done.stderr, done.stdout + done.stderr


def test_devices_by_xla_flags():
  done = python("import jax; print(len(jax.devices()))", XLA_FLAGS="--xla_force_host_platform_device_count=3", **ASKED)
  assert done.stdout.strip() == "3", done.stderr


def test_exit_with_work_in_flight():
  done = python("""
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, x: jnp.tanh(x @ x), x))
x = jnp.ones((300, 300)) / 300
for _ in range(3):
  x = f(x)
""", **ASKED)
  assert done.returncode == 0, done.stderr


def test_interrupt_between_calls():
  code = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jnp.sin(x) + 1)
x = f(jnp.ones(10))
print("ready", flush=True)
while True:
  x = f(x)
"""
  # A shell's background jobs ignore SIGINT, and so would their children.
  child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=environment(**ASKED), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
  try:
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=100)
  finally:
    child.kill()
  assert "KeyboardInterrupt" in errors and child.returncode != 0


def test_memory_does_not_grow():
  """Calls and compilations: resident memory afterwards grows by less than one leaked compilation."""
  done = python("""
import jax, jax.numpy as jnp

def resident():
  with open("/proc/self/status") as status:
    return int(next(line for line in status if line.startswith("VmRSS")).split()[1])

f = jax.jit(lambda x: x * 2 + 1)
x = jnp.ones(1000)
for _ in range(4000):
  x = f(x) * 0
before = resident()
for _ in range(20000):
  x = f(x) * 0
print(resident() - before)
""", **ASKED)
  assert done.returncode == 0, done.stderr
  assert int(done.stdout) < 4096, f"{done.stdout} KiB more after 20,000 calls"


def test_only_one_symbol_is_shown():
  library = str(BUILD / "lib" / "libcapibara_pjrt.so")
  shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
  assert [line.split()[-1] for line in shown.stdout.splitlines()] == ["GetPjrtApi"]


def test_doctor_says_whose_devices_are_whose():
  command = os.environ.get("CAPIBARA_COMMAND", str(BUILD.parent / "capibara"))
  done = subprocess.run([command, "doctor", "--jax"], capture_output=True, text=True, timeout=300,
                        env=environment(CAPIBARA_PYTHON=sys.executable))
  assert done.returncode == 0, done.stdout + done.stderr
  said = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
  assert "not set" in said["JAX_PLATFORMS"] and str(BUILD / "lib") in said["plugin"]
  assert "1 of capibara" in said["capibara"] and "1 of jaxlib" in said["cpu"] and said["x"].endswith("works")
  assert "JAX_PLATFORMS=capibara" in said["hint"]
  replaced = subprocess.run([command, "doctor", "--jax"], capture_output=True, text=True, timeout=300,
                            env=environment(CAPIBARA_PYTHON=sys.executable, CAPIBARA_AS_CPU="1"))
  assert replaced.returncode == 0 and re.search("cpu +1 of capibara", replaced.stdout), replaced.stdout + replaced.stderr


def test_doctor_without_jax():
  done = subprocess.run([sys.executable, "-S", "-m", "jax_plugins.capibara"], capture_output=True, text=True, timeout=60,
                        env=environment())
  assert done.returncode == 1 and "JAX: not installed" in done.stdout and "Hint:" in done.stdout
