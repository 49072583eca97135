"""Writes linalg_programs.txt: jax's jaxpr text of linear algebra functions and their derivatives.

    python make_linalg_programs.py [OUTPUT]          (default: tests/data/linalg_programs.txt.tar.xz)
"""
import os
import re
import sys

import jax
import jax.numpy as jnp
from jax import lax

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

import recordings  # noqa: E402

la = lax.linalg
f32 = lambda *shape: jnp.zeros(shape, jnp.float32)
c64 = lambda *shape: jnp.zeros(shape, jnp.complex64)


def bound(primitive, **params):
  return lambda *xs: primitive.bind(*xs, **params)


CASES = [
    ("cholesky", la.cholesky, [f32(3, 3)]),
    ("cholesky_jvp", bound(la.cholesky_p), [f32(3, 3)]),
    ("cholesky_batch_jvp", bound(la.cholesky_p), [f32(2, 3, 3)]),
    ("triangular_solve_jvp", lambda a, b: la.triangular_solve(a, b, left_side=True, lower=True, unit_diagonal=True), [f32(3, 3), f32(3, 2)]),
    ("triangular_solve_batch_jvp", lambda a, b: la.triangular_solve(a, b, left_side=True, transpose_a=True), [f32(2, 3, 3), f32(2, 3, 3)]),
    ("triangular_solve_conj_jvp", lambda a, b: la.triangular_solve(a, b, conjugate_a=True), [c64(3, 3), c64(2, 3)]),
    ("triangular_solve_vector", lambda a, b: la.triangular_solve(a, b, left_side=True), [f32(2, 3, 3), f32(2, 3)]),
    ("triangular_solve_row_vector", lambda a, b: la.triangular_solve(a, b), [f32(2, 3, 3), f32(2, 3)]),
    ("lu_jvp", lambda x: la.lu(x)[0], [f32(3, 3)]),
    ("lu_tall_jvp", lambda x: la.lu(x)[0], [f32(4, 3)]),
    ("lu_wide_jvp", lambda x: la.lu(x)[0], [f32(3, 4)]),
    ("lu_batch_jvp", lambda x: la.lu(x)[0], [f32(2, 3, 3)]),
    ("qr_jvp", lambda x: la.qr(x, full_matrices=False), [f32(5, 3)]),
    ("qr_batch_jvp", lambda x: la.qr(x, full_matrices=False), [f32(2, 5, 3)]),
    ("qr_wide_jvp", lambda x: la.qr(x, full_matrices=False), [f32(3, 5)]),
    ("qr_full_jvp", la.qr, [f32(5, 3)]),
    ("qr_pivoting_jvp", lambda x: la.qr(x, pivoting=True, full_matrices=False)[:2], [f32(3, 3)]),
    ("qr_complex_jvp", lambda x: la.qr(x, full_matrices=False), [c64(3, 3)]),
    ("eigh", la.eigh, [f32(3, 3)]),
    ("eigh_jvp", lambda x: la.eigh(x, symmetrize_input=False), [f32(3, 3)]),
    ("eigh_complex_jvp", lambda x: la.eigh(x, symmetrize_input=False), [c64(3, 3)]),
    ("eigh_batch_jvp", lambda x: la.eigh(x, symmetrize_input=False), [f32(2, 3, 3)]),
    ("svd_tall_jvp", lambda x: la.svd(x, full_matrices=False), [f32(4, 3)]),
    ("svd_wide_jvp", lambda x: la.svd(x, full_matrices=False), [f32(3, 4)]),
    ("svd_batch_jvp", lambda x: la.svd(x, full_matrices=False), [f32(2, 3, 3)]),
    ("svd_complex_jvp", lambda x: la.svd(x, full_matrices=False), [c64(3, 3)]),
    ("svd_values_jvp", lambda x: la.svd(x, compute_uv=False), [f32(4, 3)]),
    ("tridiagonal_solve_jvp", la.tridiagonal_solve, [f32(5), f32(5), f32(5), f32(5, 2)]),
    ("symmetric_product", lambda a, c: la.symmetric_product(a, c, symmetrize_output=True), [f32(2, 3), f32(2, 2)]),
    ("svd_qr", lambda x: la.svd(x, algorithm=la.SvdAlgorithm.QR), [f32(3, 3)]),
    ("eigh_subset", lambda x: la.eigh(x, implementation=la.EighImplementation.QR, subset_by_index=(0, 3)), [f32(3, 3)]),
]


def main():
  out = ""
  for name, f, args in CASES:
    def run(*xs, f=f, n=len(args)):
      return f(*xs) if len(xs) == n else jax.jvp(f, xs[:n], xs[n:])[1]
    operands = args * 2 if name.endswith("_jvp") else args
    text = str(jax.make_jaxpr(run)(*operands))
    out += f"== {name}\n" + re.sub(r"np\.int64\((\d+)\)", r"\1", text) + "\n"
  recordings.write(recordings.output("linalg_programs.txt"), out)


main()
