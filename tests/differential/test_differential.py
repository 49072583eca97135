"""Tests the differential runner: it accepts jax compared with jax, and finds each kind of mistake."""

import os
import subprocess
import sys
from pathlib import Path

import compare
import makers
import numpy as np
import pytest

HERE = Path(__file__).resolve().parent


def run(*arguments):
    command = [sys.executable, HERE / "run.py", *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": str(HERE / "self_check")})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_jax_agrees_with_itself_in_every_mode():
    status, text = run("--against", "live", "--file", HERE / "self_check" / "sound_cases.py")
    assert status == 0, text
    assert ", 0 failed, 0 skipped" in text


def test_each_kind_of_mistake_is_found():
    status, text = run("--against", "perturbed", "--file", HERE / "self_check" / "unsound_cases.py")
    failed = [line.removeprefix("FAIL ") for line in text.splitlines() if line.startswith("FAIL ")]
    assert status == 1
    assert failed == [
        "jax.numpy.sin(f32(3))",
        "jax.jit: jax.numpy.sin(f32(3))",
        "jax.vmap of jax.numpy.sin(f32(3))",
        "jax.grad of jax.numpy.cos(f32(3))",
        "jax.numpy.sum(f32(3), axis=4)",
        "jax.numpy.sign(f32(3))",
        "jax.numpy.add(2, 3)",
        "jax.numpy.ravel(f32(2, 3))",
        "jax.numpy.split(f32(4), 2)",
        "jax.numpy.floor_divide(np.array([1, 7, 9], 'int32'), 2)",
        "jax.numpy.tanh(f32(1))",
        "jax.jit: jax.numpy.tanh(f32(1))",
        "jax.numpy.cosh(f32(1))",
    ], text


def value(array, weak=False):
    array = np.asarray(array)
    return ("value", ("array", str(array.dtype), array.shape, weak, array))


@pytest.mark.parametrize("expected, got, agrees", [
    (value(np.float32([1, np.nan])), value(np.float32([1, np.nan])), True),
    (value(np.float32([1, np.nan])), value(np.float32([1, 0])), False),
    (value(np.float32([np.inf])), value(np.float32([-np.inf])), False),
    (value(np.float32([1])), value(np.float32([1 + 1e-6])), True),
    (value(np.float32([1])), value(np.float32([1 + 1e-4])), False),
    (value(np.float32([1])), value(np.float64([1])), False),
    (value(np.float32([1])), value(np.float32([1]), weak=True), False),
    (value(np.int32([2**30])), value(np.int32([2**30 + 1])), False),
    (value(np.zeros((0, 2), np.float32)), value(np.zeros((2, 0), np.float32)), False),
    (("error", ["TypeError", "Exception"], ""), ("error", ["ValueError", "Exception"], ""), False),
    (("error", ["XlaError", "ValueError"], ""), ("error", ["ValueError", "Exception"], ""), True),
    (("error", ["TracerBoolConversionError", "TypeError"], ""), ("error", ["TypeError"], ""), False),
    (("error", ["TypeError"], ""), value(np.float32(1)), False),
])
def test_comparison(expected, got, agrees):
    assert (compare.difference(expected, got) == "") == agrees


def test_makers_give_the_same_values_wherever_the_case_stands():
    first = makers.case("numpy.add", makers.f32(3), makers.f32(3))
    second = makers.case("numpy.add", makers.f32(3), makers.f32(3))
    assert first.identity == second.identity
    assert not np.array_equal(first.args[0], first.args[1])


@pytest.mark.long  # the differential suite loads them too
def test_every_family_loads_and_names_functions():
    for path in sorted((HERE / "cases").rglob("*.py")):
        cases = makers.load(path)
        assert cases, path
        assert all(case.text for case in cases)
