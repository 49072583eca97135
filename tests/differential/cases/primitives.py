"""Primitives as values: found in traced programs, their parameters, and bound by hand to arrays of the equation."""

import importlib

from makers import *

PD = positive_definite
GENERAL = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [-0.5, 1.0, 3.0]], np.float32)
VECTOR = np.array([0.1, 0.2, 0.3], np.float32)
UPPER = np.linalg.cholesky(PD(3)).T.round(4).astype(np.float32)


def equations(jaxpr):
    """The equations of a program and of the programs in its parameters, the calls themselves left out."""
    for equation in jaxpr.eqns:
        inner = [getattr(part, "jaxpr", part) for value in equation.params.values()
                 for part in (value if isinstance(value, tuple) else (value,)) if hasattr(part, "eqns")]
        if not inner:
            yield equation
        for program in inner:
            yield from equations(program)


def plain(value):
    """A parameter as text that both libraries write alike."""
    if hasattr(value, "name") and not isinstance(value, np.dtype):
        return value.name
    return str(value)


def used(jax, name, function, *args):
    """What a traced function says of a primitive, and what binding it to zeros of the operands' types gives back."""
    module, _, short = name.rpartition(".")
    primitive = getattr(importlib.import_module(f"{jax.__name__}.{module}"), short)
    found = [e for e in equations(jax.make_jaxpr(function)(*args).jaxpr) if e.primitive == primitive]
    assert found, f"{name} stands in no equation"
    equation = found[0]
    if short == "cholesky_p":  # what lies above the diagonal is left open
        lower = lambda out: jax.numpy.tril(out)  # noqa: E731
    elif short == "schur_p":
        lower = lambda out: schur_facts(jax, *out)  # noqa: E731
    else:
        lower = lambda out: out  # noqa: E731
    out = primitive.bind(*[jax.numpy.asarray(a) for a in args], **equation.params)
    return [primitive.name, str(primitive), primitive.multiple_results, {k: plain(v) for k, v in sorted(equation.params.items())},
            [str(v.aval) for v in equation.invars], [str(v.aval) for v in equation.outvars], lower(out)]


def primitive(name, function, *args, tolerance=1e-3):
    return check(f"{name}: in a program and bound", lambda jax: used(jax, name, lambda *a: function(jax, *a), *args), tolerance=tolerance)


def linalg(jax):
    return importlib.import_module(f"{jax.__name__}.lax.linalg")


def solve(jax, b):
    return jax.lax.custom_linear_solve(lambda x: 2 * x, b, lambda matvec, b: b / 2)


def bound_solve(jax):
    equation = jax.make_jaxpr(lambda b: solve(jax, b))(VECTOR).eqns[0]
    results = equation.primitive.bind(*(jax.numpy.asarray(VECTOR) for _ in equation.invars), **equation.params)
    return [type(results).__name__, [np.asarray(x).tolist() for x in results]]


def solve_checked(jax):
    checkify = importlib.import_module(f"{jax.__name__}.experimental.checkify")
    error, _ = checkify.checkify(lambda b: solve(jax, b), errors=checkify.nan_checks)(VECTOR * float("nan"))
    return error.get()


LINALG = [
    primitive("lax.linalg.cholesky_p", lambda jax, a: linalg(jax).cholesky(a, symmetrize_input=False), PD(3)),
    primitive("lax.linalg.cholesky_p", lambda jax, a: linalg(jax).cholesky(a, symmetrize_input=False), PD(3, np.complex64, (2,))),
    primitive("lax.linalg.cholesky_update_p", lambda jax, r, v: linalg(jax).cholesky_update(r, v), UPPER, VECTOR),
    primitive("lax.linalg.eig_p", lambda jax, a: linalg(jax).eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False), GENERAL),
    primitive("lax.linalg.eigh_p", lambda jax, a: linalg(jax).eigh(a, symmetrize_input=False), PD(3)),
    primitive("lax.linalg.eigh_p", lambda jax, a: linalg(jax).eigh(a, lower=False, symmetrize_input=False, subset_by_index=(0, 2)), PD(4)),
    primitive("lax.linalg.hessenberg_p", lambda jax, a: linalg(jax).hessenberg(a), GENERAL),
    primitive("lax.linalg.householder_product_p", lambda jax, a, t: linalg(jax).householder_product(a, t), GENERAL, VECTOR),
    primitive("lax.linalg.lu_p", lambda jax, a: linalg(jax).lu(a), GENERAL),
    primitive("lax.linalg.lu_pivots_to_permutation_p", lambda jax, p: linalg(jax).lu_pivots_to_permutation(p, 4), array([1, 2, 2])),
    primitive("lax.linalg.ormqr_p", lambda jax, a, t, c: linalg(jax).ormqr(a, t, c, transpose=True), GENERAL, VECTOR, PD(3)),
    primitive("lax.linalg.qr_p", lambda jax, a: linalg(jax).qr(a, full_matrices=False), f32(4, 3)),
    primitive("lax.linalg.schur_p", lambda jax, a: linalg(jax).schur(a), GENERAL),
    primitive("lax.linalg.svd_p", lambda jax, a: linalg(jax).svd(a, compute_uv=False), f32(3, 4)),
    primitive("lax.linalg.symmetric_product_p", lambda jax, a, c: linalg(jax).symmetric_product(a, c, alpha=0.5, symmetrize_output=False), f32(3, 2), PD(3)),
    primitive("lax.linalg.triangular_solve_p", lambda jax, a, b: linalg(jax).triangular_solve(a, b, left_side=True, lower=True, transpose_a=True), PD(3), f32(3, 2)),
    primitive("lax.linalg.tridiagonal_p", lambda jax, a: linalg(jax).tridiagonal(a, lower=False), PD(4)),
    primitive("lax.linalg.tridiagonal_solve_p", lambda jax, l, d, u, b: linalg(jax).tridiagonal_solve(l, d, u, b), array([0.0, 1.0, 1.0]), array([4.0, 5.0, 6.0]), array([1.0, 1.0, 0.0]), f32(3, 2)),
    check("lax.linalg.cholesky_p: refuses integers", lambda jax: linalg(jax).cholesky_p.bind(jax.numpy.ones((2, 2), "int32"))),
    check("lax.linalg.qr_p: refuses a vector", lambda jax: linalg(jax).qr_p.bind(jax.numpy.ones(3), pivoting=False, full_matrices=True, use_magma=None)),
    check("lax.linalg.triangular_solve_p: under grad and vmap", lambda jax: jax.vmap(jax.grad(lambda b: linalg(jax).triangular_solve_p.bind(
        jax.numpy.asarray(PD(3)), b, left_side=True, lower=True, transpose_a=False, conjugate_a=False, unit_diagonal=False).sum()))(np.stack([GENERAL, GENERAL.T])), tolerance=1e-3),
    check("lax.linalg.SvdAlgorithm, lax.linalg.EighImplementation, lax.linalg.EigImplementation: members", lambda jax: [
        [(m.name, str(m)) for m in getattr(linalg(jax), n)] for n in ("SvdAlgorithm", "EighImplementation", "EigImplementation")]),
    check("lax.linalg.SvdAlgorithm: used", lambda jax: [linalg(jax).svd(PD(3), compute_uv=False, algorithm=a) for a in (linalg(jax).SvdAlgorithm.DEFAULT, linalg(jax).SvdAlgorithm.QR)], tolerance=1e-3),
    check("lax.linalg.SvdAlgorithm: no such member", lambda jax: linalg(jax).SvdAlgorithm["ABACUS"]),
    check("lax.linalg.EighImplementation: used", lambda jax: linalg(jax).eigh(PD(3), implementation=linalg(jax).EighImplementation.QR)[1], tolerance=1e-3),
    check("lax.linalg.EighImplementation: no such member", lambda jax: linalg(jax).EighImplementation["ABACUS"]),
    check("lax.linalg.EigImplementation: used", lambda jax: linalg(jax).eig(GENERAL, compute_left_eigenvectors=False, compute_right_eigenvectors=False, implementation=linalg(jax).EigImplementation.LAPACK)[0], tolerance=1e-3),
    check("lax.linalg.EigImplementation: no such member", lambda jax: linalg(jax).EigImplementation["ABACUS"]),
    check("extend.core.primitives: the same objects as in lax", lambda jax: [getattr(importlib.import_module(f"{jax.__name__}.extend.core.primitives"), n) is getattr(jax.lax, n)
        or getattr(importlib.import_module(f"{jax.__name__}.extend.core.primitives"), n) == getattr(jax.lax, n) for n in ("add_p", "dot_general_p", "scan_p", "cond_p", "while_p", "sort_p")]),
    check("extend.core.primitives: names and results", lambda jax: [(p.name, p.multiple_results) for p in (getattr(importlib.import_module(f"{jax.__name__}.extend.core.primitives"), n)
        for n in ("jit_p", "scan_p", "while_p", "cond_p", "add_p", "sort_p", "top_k_p", "psum_p", "eigh_p", "svd_p", "random_bits_p", "threefry2x32_p", "custom_jvp_call_p", "custom_vjp_call_p"))]),
    check("custom_linear_solve: bound with one result", lambda jax: bound_solve(jax)),
    check("checkify: a solve without a solution", lambda jax: str(solve_checked(jax)).splitlines()[0].split(" (")[0]),
    check("extend.core.primitives: bound", lambda jax: importlib.import_module(f"{jax.__name__}.extend.core.primitives").mul_p.bind(jax.numpy.asarray(VECTOR), jax.numpy.asarray(VECTOR))),
]

CASES = LINALG
