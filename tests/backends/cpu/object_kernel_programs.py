"""jax functions that run LAPACK or a Fourier transform under jit, and can still be compiled to object files."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from object_programs import normal


def complex_normal(*shape):
    return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)


def positive(n, *batch):
    x = normal(*batch, n, n)
    return (x @ x.swapaxes(-1, -2) + n * np.eye(n, dtype=np.float32)).astype(np.float32)


def well_conditioned(*shape):
    x = normal(*shape)
    return (x + 2 * np.eye(shape[-2], shape[-1], dtype=np.float32) * np.sqrt(np.float32(shape[-1]))).astype(np.float32)


def all_solves(a, b, c):
    """Every form of triangular_solve."""
    flags = [(left, lower, transpose, unit) for left in (True, False) for lower in (True, False)
             for transpose in (True, False) for unit in (True, False)]
    return [lax.linalg.triangular_solve(a, b if left else c, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit)
            for left, lower, transpose, unit in flags]


def all_complex_solves(a, b):
    return [lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, transpose_a=transpose, conjugate_a=conjugate)
            for lower in (True, False) for transpose in (True, False) for conjugate in (True, False)]


def spectrum(x):
    """Results of eigh that do not depend on the phases of eigenvectors."""
    values, vectors = jnp.linalg.eigh(x)
    adjoint = vectors.conj().swapaxes(-1, -2)
    return values, (vectors * values[..., None, :]) @ adjoint, adjoint @ vectors


def singular(x, full=False):
    """Results of svd that do not depend on the phases of singular vectors."""
    u, s, vt = jnp.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    product = (u[..., :k] * s[..., None, :]) @ vt[..., :k, :]
    return s, product, u.conj().swapaxes(-1, -2) @ u, vt @ vt.conj().swapaxes(-1, -2)


def kalman(a, c, q, r, x, p, measurements):
    """A Kalman filter as a scan, with the gain from a Cholesky factorization."""
    def step(state, y):
        x, p = state
        x, p = a @ x, a @ p @ a.T + q
        gain = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(c @ p @ c.T + r), c @ p).T
        x, p = x + gain @ (y - c @ x), p - gain @ c @ p
        return (x, p), x
    return lax.scan(step, (x, p), measurements)


LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 17, 24, 30, 32, 37, 64, 100, 101, 128, 210, 256, 360, 512, 1000, 1024]

KERNEL_CASES = {
    # ---- Fourier transforms
    "fft_lengths": (lambda *xs: [(jnp.fft.fft(x), jnp.fft.ifft(x)) for x in xs], *(complex_normal(n) for n in LENGTHS)),
    "rfft_lengths": (lambda *xs: [jnp.fft.rfft(x) for x in xs], *(normal(n) for n in LENGTHS)),
    "irfft_lengths": (lambda *xs: [(jnp.fft.irfft(x), jnp.fft.irfft(x, 2 * x.shape[0] - 1)) for x in xs],
                      *(complex_normal(n) for n in (2, 3, 4, 9, 17, 33, 51, 65))),
    "fft_of_batches": (lambda x: (jnp.fft.fft(x, axis=0), jnp.fft.fft(x, axis=1), jnp.fft.fft(x)), complex_normal(12, 20, 9)),
    "fft_planes": (lambda x, y: (jnp.fft.fft2(x), jnp.fft.ifft2(x), jnp.fft.fftn(x), jnp.fft.rfft2(y), jnp.fft.rfftn(y),
                                 jnp.fft.irfft2(x), jnp.fft.irfftn(x), jnp.fft.irfft2(x, (20, 17))), complex_normal(5, 20, 9),
                   normal(4, 14, 15)),
    "spectral_derivative": (lambda u: jnp.fft.irfft(1j * jnp.arange(65) * jnp.fft.rfft(u)).real, normal(128)),
    "fft_gradient": (jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 4) * 1e-3), normal(30)),
    # ---- factorizations
    "cholesky": (lambda a, b: (jnp.linalg.cholesky(a), jnp.linalg.cholesky(b), jnp.linalg.cholesky(a - 20 * jnp.eye(7))), positive(7),
                 positive(20, 3)),
    "cholesky_of_complex": (lambda x: jnp.linalg.cholesky(x @ x.conj().T + 9 * jnp.eye(9)), complex_normal(9, 9)),
    "cho_solve": (lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b), positive(12), normal(12, 3)),
    "lu": (lambda a, b, c: (jax.scipy.linalg.lu_factor(a), jax.scipy.linalg.lu(b), jax.scipy.linalg.lu(c)), normal(9, 9), normal(7, 4),
           normal(4, 7)),
    "lu_of_complex": (lambda a: jax.scipy.linalg.lu_factor(a), complex_normal(8, 8)),
    "solve": (lambda a, b, c: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), tuple(jnp.linalg.slogdet(a)),
                               jnp.linalg.solve(c, b[:6])), well_conditioned(11, 11), normal(11, 3), well_conditioned(6, 6)),
    "solve_batches": (lambda a, b: jnp.linalg.solve(a, b[..., None])[..., 0], well_conditioned(10, 4, 4), normal(10, 4)),
    "singular_lu": (lambda a: jax.scipy.linalg.lu_factor(a), np.array([[1, 2, 3], [2, 4, 6], [0, 0, 0]], np.float32)),
    "triangular": (all_solves, well_conditioned(6, 6), normal(6, 4), normal(3, 6)),
    "triangular_vectors": (lambda a, b: (jax.scipy.linalg.solve_triangular(a, b, lower=True),
                                         jax.scipy.linalg.solve_triangular(a, b, trans=1)), well_conditioned(30, 30), normal(30)),
    "triangular_of_complex": (all_complex_solves, complex_normal(5, 5) + 4 * np.eye(5, dtype=np.complex64), complex_normal(5, 3)),
    "qr": (lambda a, b, c: (*jnp.linalg.qr(a), *jnp.linalg.qr(b), *jnp.linalg.qr(b, "complete"), jnp.linalg.qr(c, "r")), normal(8, 8),
           normal(20, 6), normal(2, 5, 9)),
    "qr_of_complex": (lambda a: tuple(jnp.linalg.qr(a)), complex_normal(9, 5)),
    "cholesky_gradient": (jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a) ** 3)), positive(5)),
    "solve_gradient": (jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2), (0, 1)), well_conditioned(6, 6), normal(6)),
    # ---- spectra
    "eigh": (spectrum, (lambda x: x + x.T)(normal(16, 16))),
    "eigh_of_complex": (spectrum, (lambda x: x + x.conj().T)(complex_normal(9, 9))),
    "eigh_of_batches": (spectrum, (lambda x: x + x.swapaxes(1, 2))(normal(5, 6, 6))),
    "eigh_with_equal_values": (spectrum, np.diag(np.array([3, -1, 3, 3, 0], np.float32))),
    "eigh_of_the_upper_triangle": (lambda x: spectrum(jnp.triu(x) + jnp.triu(x, 1).T)[:2], normal(8, 8)),
    "large_and_small": (lambda x: (jnp.linalg.eigvalsh(x * 1e30) / 1e30, jnp.linalg.eigvalsh(x * 1e-30) * 1e30,
                                   jnp.linalg.svd(x * 1e30, compute_uv=False) / 1e30), (lambda x: x + x.T)(normal(7, 7))),
    "svd": (singular, normal(9, 9)),
    "svd_of_tall_and_wide": (lambda a, b: (singular(a), singular(b), singular(a, True), singular(b, True)), normal(13, 5), normal(4, 11)),
    "svd_of_complex": (lambda a, b: (singular(a), singular(b, True)), complex_normal(7, 5), complex_normal(3, 6)),
    "svd_of_low_rank": (lambda a, b: singular((a @ b).at[:, 2].set(0)), normal(8, 2), normal(2, 6)),
    "svd_of_zero": (singular, np.zeros((4, 3), np.float32)),
    "singular_values": (lambda x: (jnp.linalg.svd(x, compute_uv=False), jnp.linalg.norm(x, 2), jnp.linalg.cond(x)),
                        well_conditioned(10, 6)),
    "pseudoinverse": (jnp.linalg.pinv, normal(9, 4)),
    "least_squares": (lambda a, b: jnp.linalg.lstsq(a, b)[0], normal(12, 5), normal(12)),
    "matrix_exponential": (jax.scipy.linalg.expm, normal(6, 6)),
    # ---- in loops
    "kalman": (kalman, normal(4, 4) * np.float32(0.4), normal(2, 4), np.eye(4, dtype=np.float32) * np.float32(0.1),
               np.eye(2, dtype=np.float32), normal(4), np.eye(4, dtype=np.float32), normal(25, 2)),
    "newton_in_several_dimensions": (lambda x: lax.fori_loop(0, 8, lambda i, v: v - jnp.linalg.solve(
        jax.jacfwd(lambda y: y ** 3 - jnp.roll(y, 1) - 1)(v), v ** 3 - jnp.roll(v, 1) - 1), x),
        np.abs(normal(5)) + np.float32(1.5)),
}
KERNEL_TOLERANCES = {"fft_lengths": 2e-4, "rfft_lengths": 2e-4, "fft_planes": 2e-4, "fft_gradient": 1e-3, "cholesky_gradient": 1e-3,
                     "solve_gradient": 1e-3, "spectral_derivative": 2e-3, "pseudoinverse": 1e-4, "least_squares": 1e-4,
                     "matrix_exponential": 1e-3, "solve": 1e-3, "singular_values": 1e-4, "eigh": 1e-4,
                     "svd_of_tall_and_wide": 1e-4, "kalman": 1e-4, "eigh_of_batches": 1e-4, "large_and_small": 1e-4, "svd": 1e-4,
                     "triangular": 1e-3, "triangular_vectors": 1e-3, "solve_batches": 1e-4, "eigh_of_complex": 1e-4}

# Measured by benchmarks/objects/objects.py, and run for another architecture by a long test.
KERNELS = ["fft_lengths", "rfft_lengths", "fft_planes", "spectral_derivative", "cholesky", "lu", "solve", "solve_batches", "triangular",
           "qr", "eigh", "svd", "least_squares", "matrix_exponential", "kalman"]
