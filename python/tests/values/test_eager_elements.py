"""Elementwise operations outside jit: one compiled function serves all shapes."""

import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax

SHAPES = [(), (1,), (3,), (2, 3), (4, 1, 5), (63,), (1000,), (0,), (2, 0)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_its_elements(shape):
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) - 3
    a = jnp.asarray(x)
    np.testing.assert_array_equal(lax.add(a, a), x + x)
    np.testing.assert_array_equal(lax.mul(a, jnp.float32(2)), x * 2)
    np.testing.assert_array_equal(lax.gt(a, a * 0), x > 0)
    np.testing.assert_array_equal(lax.select(a > 0, a, -a), np.abs(x))
    np.testing.assert_array_equal(lax.clamp(-1.0, a, 1.0), np.clip(x, -1, 1))
    np.testing.assert_array_equal(lax.convert_element_type(a, np.int32), x.astype(np.int32))
    np.testing.assert_array_equal(lax.convert_element_type(a, np.float32), x)
    np.testing.assert_allclose(lax.exp(a / 100), np.exp(x / 100), rtol=1e-6)


def test_many_and_few_elements_have_the_same_bits():
    x = jnp.linspace(-4, 4, 20000)
    for function in (lax.exp, lax.sin, lax.tanh, lax.erf, lax.log1p):
        np.testing.assert_array_equal(np.asarray(function(x))[:77], np.asarray(function(x[:77])))


def test_settings_are_part_of_the_function():
    a = jnp.float32([1e-3, np.nan])
    assert lax.neg(a).shape == (2,)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        lax.neg(a)


def test_errors_of_types_are_raised():
    with pytest.raises(TypeError):
        lax.add(jnp.ones(3), jnp.ones(4))
    with pytest.raises(TypeError):
        lax.add(jnp.ones(3), jnp.ones(3, int))


def test_an_operation_that_returns_an_operand_returns_the_right_one():
    which, x = jnp.array([True, False, True]), jnp.array([1.5, 2.5, 3.5])
    assert lax.select_n(which, x).tolist() == [1.5, 2.5, 3.5]
    assert lax.select_n(jnp.array([0, 0, 0]), x).tolist() == [1.5, 2.5, 3.5]
