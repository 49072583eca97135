"""Fourier transforms and matrix decompositions in objects: the results are jax's, in both float widths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from object_checks import check, compile_object, run_object, runs_here, write_exported
from object_kernel_programs import KERNEL_CASES, KERNEL_TOLERANCES, KERNELS, singular, spectrum
from object_programs import CASES, PLAIN, TOLERANCES


@pytest.mark.parametrize("name", KERNEL_CASES)
def test_results_are_those_of_jax(tmp_path, name):
    f, *args = KERNEL_CASES[name]
    tolerance = KERNEL_TOLERANCES.get(name, 2e-5)
    check(tmp_path, f, *args, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("target", ["x86-64-v3", "aarch64"])
@pytest.mark.parametrize("name", ["fft_lengths", "fft_planes", "cholesky", "solve", "qr", "eigh_of_complex", "svd_of_tall_and_wide",
                                  "kalman"])
def test_each_target_gives_the_same(tmp_path, name, target):
    if not runs_here(target):
        pytest.skip(f"code for {target} does not run here")
    f, *args = KERNEL_CASES[name]
    tolerance = KERNEL_TOLERANCES.get(name, 2e-5)
    check(tmp_path, f, *args, target=target, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["fft_lengths", "irfft_lengths", "fft_planes", "lu", "triangular", "qr", "eigh", "svd_of_tall_and_wide"])
def test_the_harness_is_clean_under_the_address_sanitizer(tmp_path, name):
    f, *args = KERNEL_CASES[name]
    tolerance = KERNEL_TOLERANCES.get(name, 2e-5)
    check(tmp_path, f, *args, rtol=tolerance, atol=tolerance, options=["-fsanitize=address", "-g"])


@pytest.mark.long
@pytest.mark.parametrize("name", PLAIN + KERNELS)
def test_programs_that_are_measured_run_on_aarch64(tmp_path, name):
    if not runs_here("aarch64"):
        pytest.skip("code for aarch64 does not run here")
    f, *args = {**CASES, **KERNEL_CASES}[name]
    tolerance = {**TOLERANCES, **KERNEL_TOLERANCES}.get(name, 2e-5)
    check(tmp_path, f, *args, target="aarch64", rtol=tolerance, atol=tolerance)


def everything(x, z, a):
    spd = a @ a.T + 9 * jnp.eye(9)
    return (jnp.fft.fft(z), jnp.fft.irfft(z), jnp.fft.rfft(x), jnp.linalg.cholesky(spd), jnp.linalg.solve(spd, a),
            jax.scipy.linalg.lu_factor(a), tuple(jnp.linalg.qr(a)), spectrum(spd), singular(a[:, :5]), singular(a + 1j * a.T))


def test_doubles_have_their_precision(tmp_path):
    rng = np.random.default_rng(64)
    with jax.enable_x64(True):
        z = rng.normal(size=120) + 1j * rng.normal(size=120)
        check(tmp_path, everything, rng.normal(size=210), z, rng.normal(size=(9, 9)), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_nan_throughout(tmp_path, bad):
    x = np.eye(4, dtype=np.float32)
    x[2, 2] = bad

    def f(x):
        values, vectors = jnp.linalg.eigh(x)
        return [jnp.isnan(part).all() for part in (values, vectors, *jnp.linalg.svd(x))]

    compiled = compile_object(tmp_path, write_exported(tmp_path, f, (x,)))
    assert compiled.returncode == 0, compiled.stderr
    assert all(run_object(tmp_path, [x], [np.zeros((), np.bool_)] * 5))


def test_eigenvalues_do_not_depend_on_the_other_triangle(tmp_path):
    x = np.random.default_rng(1).normal(size=(6, 6)).astype(np.float32)
    for upper in (False, True):
        check(tmp_path, lambda x, upper=upper: lax.linalg.eigh(x, lower=not upper, symmetrize_input=False)[1], x, rtol=1e-5, atol=1e-5)
