"""The gradient of max pooling for results too large for the caches, against jax."""

import numpy
import pytest

import capibara.jax
import jax


def gradient(library, x, cotangent):
    lax = library.lax

    def pool(x):
        return lax.reduce_window(x, -library.numpy.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])

    return numpy.asarray(library.jit(lambda x, g: library.vjp(pool, x)[1](g)[0])(x, cotangent))


@pytest.mark.parametrize("width", [112, 104])
def test_large_results_are_those_of_jax(width):
    random = numpy.random.default_rng(3)
    x = random.standard_normal((4, 100, 112, width)).astype(numpy.float32)
    cotangent = random.standard_normal((4, 100, 56, width // 2)).astype(numpy.float32)
    numpy.testing.assert_array_equal(gradient(capibara.jax, x, cotangent), gradient(jax, x, cotangent))
