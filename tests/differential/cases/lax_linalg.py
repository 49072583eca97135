"""Calls of jax.lax.linalg."""

from makers import *

PD = positive_definite


def member(kind, name):
    return lib(lambda jax: getattr(getattr(jax.lax.linalg, kind), name))


def one(name, *args, tolerance=1e-3, **options):
    return case(f"lax.linalg.{name}", *args, tolerance=tolerance, **options)


SQUARES, COMPLEX_SQUARE = f32(2, 3, 3), c64(3, 3)

CASES = [
    one("cholesky", PD(3), transforms=True),
    one("cholesky", PD(3, np.complex64, (2,)), symmetrize_input=False),
    one("cholesky", i32(3, 3)),
    one("cholesky", f32(3)),
    one("cholesky_update", np.triu(PD(3)), f32(3), grad=False),
    one("eig", f32(3, 3), grad=False),
    one("eig", f32(3, 3), compute_left_eigenvectors=False, compute_right_eigenvectors=False, transforms=True),
    one("eig", c64(3, 3), compute_right_eigenvectors=False, grad=False),
    one("eig", f32(3, 3), implementation=member("EigImplementation", "LAPACK"), grad=False),
    one("eig", i32(3, 3)),
    one("eigh", PD(3), transforms=True),
    one("eigh", f32(3, 3), lower=False, symmetrize_input=False),
    one("eigh", PD(3, np.complex64), sort_eigenvalues=False),
    one("eigh", PD(4), subset_by_index=(1, 3)),
    one("eigh", PD(3), implementation=member("EighImplementation", "QR")),
    one("hessenberg", f32(4, 4), grad=False),
    one("hessenberg", c64(2, 3, 3), grad=False),
    one("householder_product", f32(4, 3), f32(3), grad=False),
    one("householder_product", f32(2, 3), f32(2)),
    one("lu", f32(4, 4), transforms=True),
    one("lu", f32(2, 3, 4), grad=False),
    one("lu", c64(4, 3), grad=False),
    one("lu", f32(4)),
    one("lu_pivots_to_permutation", array([1, 2, 2]), 4),
    one("lu_pivots_to_permutation", array([[1, 2, 2], [0, 1, 2]]), permutation_size=3),
    one("lu_pivots_to_permutation", array([1.0]), 4),
    one("ormqr", f32(4, 3), f32(3), f32(4, 2), grad=False),
    one("ormqr", f32(4, 3), f32(3), f32(2, 4), left=False, transpose=True, grad=False),
    # The number of iterations is not compared: it depends on the bound of the singular values.
    check("lax.linalg.qdwh: factors", lambda jax: jax.lax.linalg.qdwh(jax.numpy.asarray(PD(3)))[:2], tolerance=1e-3),
    check("lax.linalg.qdwh: of a wide matrix", lambda jax: jax.lax.linalg.qdwh(jax.numpy.ones((2, 3)))),
    one("qr", f32(4, 3), full_matrices=False, transforms=True),
    one("qr", f32(3, 4), grad=False),
    one("qr", f32(4, 3), pivoting=True, full_matrices=False, grad=False),
    *(check(f"lax.linalg.schur: what is determined, {way}", lambda jax, way=way: schur_facts(
        jax, *getattr(jax, way)(lambda a: tuple(jax.lax.linalg.schur(a)))(jax.numpy.asarray(SQUARES if way == "vmap" else SQUARES[0]))), tolerance=1e-3)
      for way in ("jit", "vmap")),
    check("lax.linalg.schur: of a complex matrix, without vectors", lambda jax: schur_value_facts(
        jax, jax.lax.linalg.schur(jax.numpy.asarray(COMPLEX_SQUARE), compute_schur_vectors=False)[0]), tolerance=1e-3),
    one("svd", f32(3, 4), full_matrices=False, transforms=True),
    one("svd", f32(4, 3), grad=False),
    one("svd", f32(4, 3), compute_uv=False, transforms=True),
    one("svd", f32(4, 3), algorithm=member("SvdAlgorithm", "QR"), grad=False),
    one("symmetric_product", f32(3, 2), f32(3, 3), symmetrize_output=True, transforms=True),
    one("symmetric_product", f32(3, 2), PD(3), alpha=0.5, beta=2.0, symmetrize_output=True),
    one("triangular_solve", PD(3), f32(2, 3), transforms=True),
    one("triangular_solve", PD(3), f32(3, 2), left_side=True, lower=True, transpose_a=True),
    one("triangular_solve", PD(3, np.complex64), c64(3, 2), left_side=True, conjugate_a=True, transpose_a=True, unit_diagonal=True),
    one("triangular_solve", PD(3), f32(3), left_side=True),
    one("triangular_solve", PD(3, batch=(2,)), f32(2, 3)),
    one("triangular_solve", PD(3), f32(2, 4)),
    one("tridiagonal", PD(4), grad=False),
    one("tridiagonal", PD(4), lower=False, grad=False),
    one("tridiagonal_solve", array([0.0, 1.0, 1.0]), array([4.0, 5.0, 6.0]), array([1.0, 1.0, 0.0]), f32(3, 2), transforms=True),
]
