"""Scans with elementwise steps on arrays too large for registers run block by block: jax's results for any layout of sequences."""

import jax
import numpy
import pytest

import capibara.jax as capibara_jax

LENGTH = 11


def both(function, *inputs, wide=False):
    """The results of jax and of capibara."""
    results = []
    for library in (jax, capibara_jax):
        library.config.update("jax_enable_x64", wide)
        results.append([numpy.asarray(leaf) for leaf in library.tree_util.tree_leaves(library.jit(function(library))(*inputs))])
    return results


def agree(function, *inputs, wide=False, tolerance=1e-5):
    expected, got = both(function, *inputs, wide=wide)
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        assert a.dtype == b.dtype and a.shape == b.shape
        numpy.testing.assert_allclose(numpy.asarray(b, numpy.float64), numpy.asarray(a, numpy.float64), rtol=tolerance, atol=tolerance)


def normal(*shape, dtype=numpy.float32, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(65,), (127,), (128,), (1000,), (3, 41), (7, 9, 31), (40, 1024)])
def test_steps_first(shape, reverse):
    def function(library):
        jnp = library.numpy

        def run(start, rate, xs):
            def step(carry, x):
                value, count = carry
                value = value * jnp.cos(rate) + x * count
                return (value, count + 1), (value, jnp.maximum(value, x))
            return library.lax.scan(step, (start, jnp.float32(1)), xs, reverse=reverse)
        return run
    agree(function, normal(*shape), normal(*shape, seed=1), normal(LENGTH, *shape, seed=2), tolerance=1e-4)


@pytest.mark.parametrize("length", [3, 4, 10, 37, 300])
@pytest.mark.parametrize("shape", [(66,), (9, 9), (5, 7, 11), (3, 512)])
def test_steps_last(shape, length):
    """Sequences are read and written with the steps in the last dimension, once in order and once in reverse."""
    def function(library):
        jnp = library.numpy

        def run(a, b):
            def step(carry, now):
                x, y = now
                carry = jnp.minimum(carry + y, x)
                return carry, (carry, carry * x)
            first = lambda value: jnp.moveaxis(value, -1, 0)
            last = lambda value: jnp.moveaxis(value, 0, -1)
            start = a[..., 0] * 0
            _, (down, kept) = library.lax.scan(step, start, (first(a), first(b)))
            down, kept = last(down), last(kept)
            _, (up, other) = library.lax.scan(step, start, (first(jnp.flip(down, -1)), first(jnp.flip(b, -1))), reverse=True)
            return down, kept + 1, jnp.flip(last(up), -1), last(other) * a
        return run
    agree(function, normal(*shape, length), normal(*shape, length, seed=1))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "float16", "bfloat16", "float32", "float64", "bool"])
def test_dtypes(dtype):
    def function(library):
        jnp = library.numpy

        def run(start, xs):
            start, xs = start.astype(dtype), xs.astype(dtype)

            def step(carry, x):
                if dtype == "bool":
                    following = carry ^ x
                else:
                    following = carry * x.dtype.type(0 if carry.dtype.kind in "iu" else 0.5) + x
                return following, following | x if dtype == "bool" else following - x
            _, ys = library.lax.scan(step, start, jnp.moveaxis(xs, 1, 0))
            return _.astype(jnp.float32), jnp.moveaxis(ys, 0, 1).astype(jnp.float32)
        return run
    agree(function, 3 * normal(130), 3 * normal(130, 12, seed=1), wide=dtype == "float64", tolerance=1e-2 if "16" in dtype else 1e-5)


def test_carries_change_places():
    def function(library):
        def run(a, b, xs):
            def step(carry, x):
                a, b, unchanged = carry
                return (b, a + x + unchanged, unchanged), None
            return library.lax.scan(step, (a, b, a), xs)[0]
        return run
    agree(function, normal(500), normal(500, seed=1), normal(LENGTH, 500, seed=2))


def test_a_nested_scan_and_its_gradient():
    def function(library):
        jnp = library.numpy

        def loss(start, xs):
            def inner(carry, x):
                return carry * 0.9 + jnp.sin(x) * 0.1, carry * x

            def outer(carry, _):
                carry, ys = library.lax.scan(inner, carry, jnp.moveaxis(xs, 1, 0))
                return carry / (1 + jnp.abs(carry).max()), jnp.moveaxis(ys, 0, 1).sum()
            final, sums = library.lax.scan(outer, start, None, length=3)
            return (final * final).sum() + sums.sum()
        return library.value_and_grad(loss, argnums=(0, 1))
    agree(function, normal(200), normal(200, 8, seed=1), tolerance=2e-4)


def test_donated_first_values():
    for library in (jax, capibara_jax):
        library.config.update("jax_enable_x64", False)

    def function(library):
        def run(start, xs):
            return library.lax.scan(lambda carry, x: (carry + x, carry), start, xs)
        return run
    start, xs = normal(300), normal(LENGTH, 300, seed=1)
    expected = jax.jit(function(jax))(start, xs)
    got = capibara_jax.jit(function(capibara_jax), donate_argnums=(0, 1))(capibara_jax.numpy.asarray(start), capibara_jax.numpy.asarray(xs))
    for a, b in zip(expected, got):
        numpy.testing.assert_allclose(numpy.asarray(b), numpy.asarray(a), rtol=1e-6)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_numbers_of_threads_change_no_bit(threads):
    import os
    import subprocess
    import sys
    script = """
import hashlib, numpy
import capibara.jax as jax
jnp = jax.numpy
def run(start, xs):
    def step(carry, x):
        carry = jnp.tanh(carry * 0.7 + x)
        return carry, jnp.exp(carry)
    final, ys = jax.lax.scan(step, start, jnp.moveaxis(xs, 1, 0))
    return final, jnp.moveaxis(ys, 0, 1)
random = numpy.random.default_rng(0)
outputs = jax.jit(run)(random.standard_normal(30001).astype("float32"), random.standard_normal((30001, 9)).astype("float32"))
print(hashlib.sha256(b"".join(numpy.asarray(value).tobytes() for value in outputs)).hexdigest())
"""
    runs = {subprocess.run([sys.executable, "-c", script], env=dict(os.environ, CAPIBARA_NUM_THREADS=count), capture_output=True,
                           text=True, check=True).stdout for count in ("3", threads)}
    assert len(runs) == 1
