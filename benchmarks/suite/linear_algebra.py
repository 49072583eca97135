"""Batches of small matrices of order 4 to 64: Cholesky factors, linear systems, QR, eigenvalues and singular values."""

import numpy

from .row import Row

AHEAD = {"jax": 1.5, "torch": 1.0}


def general(count, order, others=None):
    def make(random):
        matrices = random.standard_normal((count, order, order)).astype(numpy.float32)
        matrices += 2 * order**0.5 * numpy.eye(order, dtype=numpy.float32)
        return (matrices,) if others is None else (matrices, random.standard_normal((count, order, others)).astype(numpy.float32))
    return make


def positive(count, order):
    def make(random):
        matrices = random.standard_normal((count, order, order))
        product = matrices @ matrices.transpose(0, 2, 1) / order + numpy.eye(order)
        return (product.astype(numpy.float32),)
    return make


def symmetric(count, order):
    def make(random):
        matrices = random.standard_normal((count, order, order))
        return ((matrices + matrices.transpose(0, 2, 1)).astype(numpy.float32),)
    return make


def triangular(count, order, others):
    def make(random):
        matrices, right = general(count, order, others)(random)
        return numpy.tril(matrices), right
    return make


def rows():
    found = []
    for order, count in ((4, 16384), (8, 8192), (16, 4096), (32, 1024), (64, 256)):
        batch = f"({count},{order},{order}) f32"
        found += [
            Row(f"cholesky {count} of {order}", batch, positive(count, order), lambda jax: jax.numpy.linalg.cholesky,
                torch=lambda torch: torch.linalg.cholesky, numpy=lambda numpy: numpy.linalg.cholesky, least=AHEAD, tolerance=1e-4),
            Row(f"solve {count} of {order}", f"{batch}, one column each", general(count, order, 1), lambda jax: jax.numpy.linalg.solve,
                torch=lambda torch: torch.linalg.solve, numpy=lambda numpy: numpy.linalg.solve, least=AHEAD, tolerance=1e-4),
            Row(f"qr {count} of {order}", batch, general(count, order), lambda jax: lambda a: tuple(jax.numpy.linalg.qr(a)),
                torch=lambda torch: lambda a: tuple(torch.linalg.qr(a)), numpy=lambda numpy: lambda a: tuple(numpy.linalg.qr(a)),
                least=AHEAD, tolerance=1e-4),
            # Signs of the vectors are arbitrary, so only the values are compared.
            Row(f"eigh {count} of {order}", batch, symmetric(count, order), lambda jax: lambda a: tuple(jax.numpy.linalg.eigh(a)),
                torch=lambda torch: lambda a: tuple(torch.linalg.eigh(a)), numpy=lambda numpy: lambda a: tuple(numpy.linalg.eigh(a)),
                least=AHEAD, tolerance=1e-4, checked=lambda out: out[0]),
            Row(f"svd {count // 4} of {order}", batch.replace(str(count), str(count // 4)), general(count // 4, order),
                lambda jax: lambda a: tuple(jax.numpy.linalg.svd(a, full_matrices=False)),
                torch=lambda torch: lambda a: tuple(torch.linalg.svd(a, full_matrices=False)),
                numpy=lambda numpy: lambda a: tuple(numpy.linalg.svd(a, full_matrices=False)),
                least=AHEAD, tolerance=1e-4, checked=lambda out: out[1]),
        ]
    found += [
        Row("triangular solve 1024 of 32", "(1024,32,32) lower, 32 columns each, f32", triangular(1024, 32, 32),
            lambda jax: lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
            torch=lambda torch: lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), least=AHEAD, tolerance=1e-4),
        Row("lu 1024 of 32", "(1024,32,32) f32", general(1024, 32), lambda jax: lambda a: jax.lax.linalg.lu(a)[0],
            torch=lambda torch: lambda a: torch.linalg.lu_factor(a)[0], least=AHEAD, tolerance=1e-4),
    ]
    return found
