"""Fourier transforms: powers of two, products of small primes, primes, batches, two dimensions, real numbers."""

import numpy

from .row import Row

AHEAD = {"jax": 1.5, "scipy": 1.0, "torch": 0.8}


def pairs(*shape):
    return lambda random: ((random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(numpy.complex64),)


def reals(*shape):
    return lambda random: (random.standard_normal(shape).astype(numpy.float32),)


def transform(name, what, inputs, function, **keywords):
    """One function of numpy.fft, scipy.fft and torch.fft, which use the same names."""
    return Row(f"{function} {name}", what, inputs, lambda jax: getattr(jax.numpy.fft, function),
               torch=lambda torch: getattr(torch.fft, function), numpy=lambda numpy: getattr(numpy.fft, function),
               scipy=lambda scipy: getattr(scipy.fft, function), least=AHEAD, tolerance=1e-5, **keywords)


def rows():
    found = [transform(f"2^{power}", f"{1 << power} complex64", pairs(1 << power), "fft") for power in (8, 10, 12, 14, 16, 18, 20)]
    found += [
        transform("11025", "105^2 complex64: 3, 5 and 7", pairs(11025), "fft"),
        transform("64 of 4725", "(64,4725) complex64: 3, 5 and 7", pairs(64, 4725), "fft"),
        transform("997", "a prime, complex64", pairs(997), "fft"),
        transform("100003", "a prime, complex64", pairs(100003), "fft"),
        transform("256 of 1024", "(256,1024) complex64", pairs(256, 1024), "fft"),
        transform("512^2", "(512,512) complex64", pairs(512, 512), "fft2"),
        transform("64^3", "(64,64,64) complex64", pairs(64, 64, 64), "fftn"),
        transform("2^20", "1048576 f32", reals(1 << 20), "rfft"),
        transform("256 of 1024", "(256,1024) f32", reals(256, 1024), "rfft"),
        transform("512^2", "(512,512) f32", reals(512, 512), "rfft2"),
        transform("256 of 513", "(256,513) complex64 to (256,1024) f32", pairs(256, 513), "irfft"),
    ]
    return found
