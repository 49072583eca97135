"""jax.test_util: derivatives compared with finite differences."""
import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import tree_util
from capibara.jax._api import jvp, vjp

_STEP = 1e-4
_TOLERANCES = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 1e-5, "complex64": 1e-3, "complex128": 1e-5}


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None):
    """Raises AssertionError where derivatives of f, up to an order, differ from finite differences along random directions."""
    args, eps = tuple(args), eps or _STEP

    def check(f, args, order, message=""):
        if "fwd" in modes:
            check_jvp(f, lambda *both: jvp(f, *both), args, atol, rtol, eps, f"{message}JVP")
            if order > 1:
                check(lambda *primals: jvp(f, primals, _directions(args, np.random.RandomState(1)))[1], args, order - 1, f"{message}JVP of ")
        if "rev" in modes:
            check_vjp(f, lambda *primals: vjp(f, *primals), args, atol, rtol, eps, f"{message}VJP")
            if order > 1:
                cotangent = _directions(f(*args), np.random.RandomState(2))
                check(lambda *primals: vjp(f, *primals)[1](cotangent), args, order - 1, f"{message}VJP of ")

    check(f, args, order)


def check_jvp(f, f_jvp, args, atol=None, rtol=None, eps=_STEP, err_msg=""):
    """Raises AssertionError where f_jvp(primals, tangents) is not f's value and derivative along a random direction."""
    args = tuple(args)
    tangents = _directions(args, np.random.RandomState(0))
    value, tangent = f_jvp(args, tangents)
    _compare(value, f(*args), atol, rtol, f"{err_msg} primal")
    _compare(tangent, _difference(f, args, tangents, eps), atol, rtol, f"{err_msg} tangent")


def check_vjp(f, f_vjp, args, atol=None, rtol=None, eps=_STEP, err_msg=""):
    """Raises AssertionError where f_vjp(*primals) = (value, pullback) disagrees with f along random directions."""
    args = tuple(args)
    value, pullback = f_vjp(*args)
    _compare(value, f(*args), atol, rtol, f"{err_msg} primal")
    generator = np.random.RandomState(0)
    tangents = _directions(args, generator)
    change = _difference(f, args, tangents, eps)
    cotangent = _directions(value, generator)
    _compare(_inner(tangents, pullback(cotangent)), _inner(change, cotangent), atol, rtol, f"{err_msg} cotangent projection")


def _directions(tree, generator):
    """Random values of the shapes and dtypes of a tree; float0 zeros for what has no derivative."""

    def one(x):
        aval = _core.type_of(x).to_tangent_aval()
        if aval.dtype == np.dtype([("float0", np.void, 0)]):
            return np.zeros(aval.shape, aval.dtype)
        values = generator.randn(*aval.shape)
        if np.issubdtype(aval.dtype, np.complexfloating):
            values = values + 1j * generator.randn(*aval.shape)
        return np.asarray(values, aval.dtype)

    return tree_util.tree_map(one, tree)


def _moves(direction):
    return direction.dtype != np.dtype([("float0", np.void, 0)])


def _difference(f, args, tangents, eps):
    def moved(sign):
        return f(*tree_util.tree_map(lambda x, d: x + np.asarray(sign * eps, d.dtype) * d if _moves(d) else x, args, tangents))

    def quotient(above, below):
        above, below = np.asarray(above), np.asarray(below)
        wide = np.complex128 if np.issubdtype(above.dtype, np.complexfloating) else np.float64
        return (above.astype(wide) - below.astype(wide)) * (0.5 / eps)

    return tree_util.tree_map(quotient, moved(1.0), moved(-1.0))


def _inner(first, second):
    total = 0.0
    for a, b in zip(tree_util.tree_leaves(first), tree_util.tree_leaves(second)):
        a, b = np.asarray(a), np.asarray(b)
        if _moves(a) and _moves(b):
            total += np.sum(np.real(a * b), dtype=np.float64)
    return np.asarray(total, np.float32)


def _tolerance(given, dtypes):
    return max(given if isinstance(given, (int, float)) else (given or {}).get(dtype, _TOLERANCES.get(str(dtype), 0)) for dtype in dtypes)


def _compare(got, expected, atol, rtol, message):
    first, structure = tree_util.tree_flatten(got)
    second, other = tree_util.tree_flatten(expected)
    assert structure == other, f"{message}: the result is a {structure}, expected a {other}"
    for a, b in zip(first, second):
        a, b = np.asarray(a), np.asarray(b)
        if not _moves(a):
            continue
        absolute, relative = _tolerance(atol, (a.dtype, b.dtype)), _tolerance(rtol, (a.dtype, b.dtype))
        wide = np.complex128 if np.issubdtype(a.dtype, np.complexfloating) else np.float64
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), atol=absolute, rtol=relative, err_msg=message)


explain_missing(__name__)
