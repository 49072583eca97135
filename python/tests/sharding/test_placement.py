"""Computations run on the requested device: from jit's arguments, the default device, or the device of their arguments."""
import os
import subprocess
import sys

import pytest
from xla_cpu_plugin import needs_plugin, plugin

pytest.importorskip("capibara._core", reason="the Python extension is not built")


def run(program, platform="cpu", devices=4):
  environment = dict(os.environ, CAPIBARA_PLUGIN=plugin() or "", JAX_PLATFORMS=platform, JAX_NUM_CPU_DEVICES=str(devices))
  start = "import capibara.jax as jax\nimport capibara.jax.numpy as jnp\nimport numpy as np\nfrom capibara.jax import lax\n"
  done = subprocess.run([sys.executable, "-c", start + program], capture_output=True, text=True, timeout=300, env=environment)
  assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
  return done.stdout.split()


@needs_plugin
def test_jit_runs_on_the_backend_it_names():
  assert run("""
f = jax.jit(lambda x: x + 1, backend="xla_cpu")
x = f(jnp.arange(3.0))
print(*x.devices(), x.committed, x.tolist() == [1, 2, 3], *f(2.0).devices(), *jnp.ones(3).devices())
x = jax.jit(lambda: jnp.ones(3), backend="xla_cpu")()
print(*x.devices(), *jax.vmap(f)(jnp.ones(2)).devices(), jax.grad(f)(1.0))
""") == ["xla_cpu:0", "True", "True", "xla_cpu:0", "cpu:0", "xla_cpu:0", "xla_cpu:0", "1.0"]


@needs_plugin
def test_jit_runs_on_the_device_it_names():
  assert run("""
one = jax.devices("xla_cpu")[2]
f = jax.jit(lambda x: x + 1, device=one)
print(*f(jnp.ones(2)).devices(), *f(jax.device_put(1.0, jax.devices("xla_cpu")[1])).devices(), *(f(1.0) * 2).devices())
""") == ["xla_cpu:2"] * 3


@needs_plugin
def test_a_native_program_runs_beside_a_plugin():
  assert run("""
f = jax.jit(lambda x: x + 1, backend="cpu")
x = jax.device_put(jnp.ones(2), jax.devices("cpu")[0])
print(*f(jnp.ones(2)).devices(), *(x * 2).devices(), *jax.jit(lambda x: x * 2)(x).devices(), *jnp.ones(2).devices())
""", platform="xla_cpu") == ["cpu:0", "cpu:0", "cpu:0", "xla_cpu:0"]


@needs_plugin
def test_a_jit_inside_of_a_program_of_another_platform_is_refused():
  assert run("""
try:
    jax.jit(lambda x: jax.jit(lambda y: y, backend="xla_cpu")(x))(1.0)
except ValueError as error:
    print("incompatible" in str(error))
""") == ["True"]


@needs_plugin
def test_the_default_device_decides_for_unplaced_values():
  assert run("""
three = jax.devices("xla_cpu")[3]
with jax.default_device(three):
    x = jnp.arange(3.0)
    y = jax.jit(lambda x: x * 2)(x)
    print(*x.devices(), *y.devices(), y.committed, *jax.jit(lambda: jnp.zeros(2))().devices())
    with jax.default_device(None):
        print(*jnp.ones(1).devices())
print(*jnp.arange(3).devices(), *(y + 1).devices(), jax.devices()[0])
with jax.default_device("xla_cpu"):
    print(*jnp.ones(1).devices(), jax.devices()[0])
jax.config.update("jax_default_device", three)
print(*jnp.ones(1).devices(), jax.config.jax_default_device == three)
""") == ["xla_cpu:3", "xla_cpu:3", "False", "xla_cpu:3", "cpu:0", "cpu:0", "cpu:0", "cpu:0", "xla_cpu:0", "cpu:0", "xla_cpu:3", "True"]


@needs_plugin
def test_computation_follows_committed_arguments():
  assert run("""
x = jax.device_put(jnp.arange(3.0), jax.devices("xla_cpu")[1])
f = jax.jit(lambda x: jnp.sin(x).sum())
print(*(x + 1).devices(), *f(x).devices(), *f(jnp.arange(3.0)).devices(), *f(x).devices(), (x + 1).committed)
y = jax.device_put(jnp.arange(3.0), jax.devices("cpu")[0])
for call in (lambda: x + y, lambda: jax.jit(jnp.add)(x, y)):
    try:
        call()
    except ValueError as error:
        print("incompatible" in str(error))
""") == ["xla_cpu:1", "xla_cpu:1", "cpu:0", "xla_cpu:1", "True", "True", "True"]


@needs_plugin
def test_a_platforms_own_branch_is_taken():
  program = """
f = lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2, default=lambda x: x + 3)
g = lambda x: lax.platform_dependent(x, tpu=lambda x: x + 2, default=lambda x: x + 3)
print(f(0), jax.jit(f)(0), g(0), jax.jit(g)(0), jax.grad(f)(1.0))
try:
    lax.platform_dependent(1, tpu=lambda x: x)
except NotImplementedError as error:
    print("'cpu'" in str(error))
"""
  assert run(program) == run(program, platform="xla_cpu") == ["1", "1", "3", "3", "1.0", "True"]


def test_the_native_backend_computes_on_each_of_its_devices():
  assert run("""
print(len(jax.devices()))
for placed in (jax.device_put(1.0, jax.devices()[3]), jnp.ones(2).to_device(jax.devices()[1])):
    print(placed.device, (placed + 1).device, placed.committed)
print(jax.jit(lambda x: x * 2, device=jax.devices()[2])(1.0).device)
with jax.default_device(jax.devices()[1]):
    made = jnp.ones(2) + 1
    print(made.device, made.committed)
print((made + 1).device, jax.device_put(1.0, jax.devices()[0]).committed)
""") == ["4", "cpu:3", "cpu:3", "True", "cpu:1", "cpu:1", "True", "cpu:2", "cpu:1", "False", "cpu:0", "True"]
