"""Results computed from the same values share one loop nest: values that only they read are not stored."""

import jax
import numpy
import pytest

import capibara.jax as capibara_jax


@pytest.fixture(autouse=True)
def wide():
    for library in (jax, capibara_jax):
        library.config.update("jax_enable_x64", True)
    yield
    for library in (jax, capibara_jax):
        library.config.update("jax_enable_x64", False)


def sums_of_terms(library, count):
    """Three sums over terms that each share an expensive value, as in finite-volume codes with several triads per face."""
    jnp = library.numpy

    def run(x, y):
        first = second = third = 0.0
        for i in range(count):
            slope = (x + i) / (y * y + 1.0 + i)
            kept = 0.5 * (1.0 + jnp.tanh(slope - 0.1 * i))
            first = first + 0.25 * kept
            second = second + kept * slope * x
            third = third + kept * slope * slope
        return first * y - second, third, second * 2.0
    return run


def call_count(compiled):
    return sum(line.strip().startswith("invoke") for line in compiled.as_text().splitlines())


@pytest.mark.parametrize("count", [1, 4, 9, 24])
def test_values(count):
    random = numpy.random.default_rng(0)
    inputs = random.standard_normal((70, 33)), random.standard_normal((70, 33))
    expected = jax.jit(sums_of_terms(jax, count))(*inputs)
    got = capibara_jax.jit(sums_of_terms(capibara_jax, count))(*inputs)
    for a, b in zip(expected, got):
        numpy.testing.assert_allclose(numpy.asarray(b), numpy.asarray(a), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("count", [4, 6])
def test_one_nest(count):
    inputs = numpy.zeros((70, 33)), numpy.zeros((70, 33))
    assert call_count(capibara_jax.jit(sums_of_terms(capibara_jax, count)).lower(*inputs).compile()) == 1
