"""The catalog's traits of primitives agree with jax's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))

# Each prints jax's names, and those with the trait.
PEER = """
import gc
import jax
from jax._src import checkify, core, random
from jax.experimental import io_callback
from jax.interpreters import mlir
primitives = [one for one in gc.get_objects() if isinstance(one, core.Primitive)]
checked = [one for one, rule in checkify.error_checks.items() if getattr(rule, "func", None) is checkify.nan_error_check]
print(*{one.name for one in primitives}, sep=",")
print(*{one.name for one in primitives if one.multiple_results}, sep=",")
print(*{one.name for one in checked}, sep=",")
"""
OURS = """
from capibara import _core
catalog = _core.catalog()
print(*(one.name for one in catalog), sep=",")
print(*(one.name for one in catalog if one.multiple_results), sep=",")
print(*(one.name for one in catalog if one.nan_checked), sep=",")
"""


def facts(program, **environment):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}, check=True)
    return [set(line.split(",")) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def both():
    return facts(PEER, JAX_PLATFORMS="cpu"), facts(OURS, PYTHONPATH=str(BUILD / "python"))


def test_primitives_with_several_results_are_those_of_jax(both):
    (peer, several, _), (names, ours, _) = both
    assert len(names & peer) > 190
    assert ours & peer == several & names


def test_primitives_whose_results_checkify_looks_at_are_those_of_jax(both):
    (peer, _, checked), (names, _, ours) = both
    assert checked <= names
    assert ours & peer == checked
