"""Compiles a program with libtpu in a child process to read back the compiler's flags; nothing runs on a TPU."""
import os
import pathlib
import subprocess
import sys
import tempfile

from capibara import _core, _tracebacks

_PROBE = """
import capibara.jax as jax, capibara.jax.numpy as jnp
from capibara.jax.experimental import topologies
from capibara.jax.sharding import SingleDeviceSharding
device = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0]
jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), jnp.float32, sharding=SingleDeviceSharding(device))).compile()
"""


def read_back(seconds=120):
    """({flag: value}, error text): the compiler's flags for x + 1 in this environment; one of the two is empty."""
    problem = _core.tpu.libtpu_problem()
    if problem:
        return {}, problem
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(pathlib.Path(_core.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "CAPIBARA_XLA_OPTIONS": f"xla_dump_to={folder}", "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
        try:
            done = subprocess.run([sys.executable, "-c", _PROBE], env=environment, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return {}, f"the compiler was ended after {seconds} s"
        files = list(pathlib.Path(folder).glob("*flagfile"))
        if not files:
            said = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line or "Error" in line]
            return {}, said[-1] if said else f"the compiler ended with status {done.returncode}"
        pairs = (line.removeprefix("--").partition("=") for line in files[0].read_text().splitlines() if line.startswith("--"))
        return {name: value.strip("'") for name, _, value in pairs}, ""


_tracebacks.guard(__name__)
