"""Partially unrolled scans run several steps in each iteration of the compiled loop."""

import re

import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp


def step(carry, x):
    carry = carry * 0.5 + x
    return carry, carry - x


XS = np.linspace(-1, 1, 21, dtype=np.float32).reshape(7, 3)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [2, 3, 4, 6, 7, 9])
def test_values_are_those_of_single_steps(unroll, reverse):
    scan = jax.jit(jax.lax.scan, static_argnames=("f", "reverse", "unroll"))
    want = scan(step, jnp.zeros(3), XS, reverse=reverse)
    got = scan(step, jnp.zeros(3), XS, reverse=reverse, unroll=unroll)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("unroll,trips", [(1, [7]), (2, [3]), (3, [2]), (4, []), (7, [])])
def test_the_compiled_loop_has_fewer_iterations(unroll, trips):
    compiled = jax.jit(lambda xs: jax.lax.scan(step, jnp.zeros(3), xs, unroll=unroll)).lower(XS).compile()
    assert [int(count) for count in re.findall(r"for %\d+ < (\d+) poll", compiled.as_text())] == trips


def test_gradients():
    def last(xs, unroll):
        return jax.lax.scan(step, jnp.zeros(3), xs, unroll=unroll)[0].sum()

    want, got = (jax.jit(jax.grad(last), static_argnums=1)(XS, unroll) for unroll in (1, 3))
    np.testing.assert_allclose(got, want, rtol=1e-6)
