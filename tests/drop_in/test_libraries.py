"""Installed libraries that build on jax give the same numbers on jax and under `python -m capibara`."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from test_scripts import assert_alike, module_path, printed_by_jax, run

HERE = Path(__file__).resolve().parent
NEEDS = {"checked_functions": (), "optax_training": ("optax",), "chex_checks": ("chex",), "equinox_network": ("equinox", "optax"),
         "flax_network": ("flax", "optax"), "nnx_network": ("flax", "optax"), "nnx_variables": ("flax",),
         "numpyro_inference": ("numpyro",),
         "haiku_network": ("haiku",), "diffrax_equations": ("diffrax", "lineax", "optimistix"),
         "library_loops": ("equinox", "diffrax", "lineax", "optimistix"),
         "distrax_densities": ("distrax", "tensorflow_probability"), "keras_network": ("keras",), "e3nn_features": ("e3nn_jax", "flax")}


def test_each_script_says_what_it_needs():
    assert sorted(NEEDS) == sorted(script.stem for script in (HERE / "libraries").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_library_gives_the_numbers_of_jax(name, tmp_path):
    absent = [library for library in NEEDS[name] if importlib.util.find_spec(library) is None]
    if absent:
        pytest.skip(f"{absent[0]} is not installed")
    script, watched = HERE / "libraries" / f"{name}.py", tmp_path / "modules"
    path = os.pathsep.join([str(module_path()), str(HERE / "watch")])
    got = run([sys.executable, "-m", "capibara", script], PYTHONPATH=path, WATCHED_MODULES=str(watched))
    modules = watched.read_text().split()
    assert "capibara" in modules and "jaxlib" not in modules
    assert_alike(printed_by_jax(script), got, relative=1e-4, absolute=1e-5)
