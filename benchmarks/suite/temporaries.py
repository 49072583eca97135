"""Temporaries of fused kernels, the memory needed besides operands and results, on shapes that take jax too long to time."""

import libraries
import numpy

from .attention import attention, gradient, inputs_of
from .row import ProcessRow

LENGTH = 8192


def megabytes(program):
    """For jax XLA's plan, without running it; for capibara the counted peak of a call."""
    def measure(library, jax):
        arrays = [jax.numpy.asarray(x) for x in inputs_of(LENGTH)(numpy.random.default_rng(7))]
        return libraries.temporaries(jax, jax.jit(program(jax)).lower(*arrays).compile(), arrays) / 1e6
    return measure


def rows():
    shape = f"B1 H12 S{LENGTH} d64 f32, causal"
    twentieth = dict(unit="MB", least={"jax": 20}, repeat=1)
    return [
        ProcessRow(f"temporaries of attention S{LENGTH}", shape, megabytes(attention()), ("capibara", "jax"), **twentieth),
        ProcessRow(f"temporaries of attention S{LENGTH} gradient", f"{shape}, forwards and backwards", megabytes(gradient(attention())),
                   ("capibara", "jax"), **twentieth),
    ]
