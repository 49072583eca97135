"""Pickled functions: jitted ones, library functions, and ufuncs; names of jaxlib after install()."""
import pickle
import subprocess
import sys

import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp


def twice(x, power=1):
  return 2 * x**power


jitted_twice = jax.jit(twice, static_argnames="power")


@jax.jit
def thrice(x):
  return 3 * x


@pytest.mark.parametrize("function", [jnp.sin, jnp.linalg.norm, jax.nn.relu, jax.lax.add, jax.random.normal, jnp.add, thrice])
def test_functions_with_names_are_pickled_by_them(function):
  assert pickle.loads(pickle.dumps(function)) is function


def test_a_jitted_function_keeps_its_options():
  other = jax.jit(twice, static_argnames="power")  # not an attribute of any module
  again = pickle.loads(pickle.dumps(other))
  assert again is not other and again(3.0, power=2) == 18.0
  assert again.lower(3.0, power=2).compile()(3.0) == 18.0
  made = jnp.frompyfunc(twice, 1, 1, identity=0)
  assert pickle.loads(pickle.dumps(made)) == made


def test_names_of_jaxlib_are_those_of_capibara():
  text = ("import capibara.jax as jax; jax.install(); import jaxlib.xla_client as client, sys\n"
          "from jaxlib._jax import PjitFunction; from jaxlib.xla_extension import XlaRuntimeError\n"
          "assert isinstance(jax.devices()[0], client.Device) and isinstance(jax.jit(abs), PjitFunction)\n"
          "assert XlaRuntimeError is jax.errors.JaxRuntimeError and sys.modules['jaxlib'].__name__ == 'capibara.jaxlib'\n"
          "import jaxlib.mlir")
  done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
  assert done.stderr.strip().splitlines()[-1].startswith("ModuleNotFoundError"), done.stderr
