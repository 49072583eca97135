"""jax.test_util: checks derivatives against finite differences."""
import functools

import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import tree_util
from capibara.jax._api import jvp, linearize, vjp

_STEP = 1e-4
_TOLERANCES = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 1e-5, "complex64": 1e-3, "complex128": 1e-5}


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None):
    """Raises AssertionError if derivatives of f, up to an order, differ from finite differences along random directions.

    `modes` are "fwd" (jvp), "rev" (vjp) and "lin" (linearize).
    """
    args, eps = tuple(args), eps or _STEP

    def linearized(f, primals, tangents):
        value, tangent_function = linearize(f, *primals)
        return value, tangent_function(*tangents)

    def pulled_back(f, *primals):
        value, pullback = vjp(f, *primals)
        return pullback(value)

    def check(f, args, order, message=""):
        for mode, name, forward in (("fwd", "JVP", jvp), ("lin", "LIN", linearized)):
            if mode not in modes:
                continue
            own = f"{name} of {message}" if message else name
            check_jvp(f, functools.partial(forward, f), args, atol, rtol, eps, own)
            if order > 1:
                check(functools.partial(forward, f), (args, args), order - 1, own)
        if "rev" in modes:
            own = f"VJP of {message}" if message else "VJP"
            check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, own)
            if order > 1:
                check(functools.partial(pulled_back, f), args, order - 1, own)

    check(f, args, order)


def check_jvp(f, f_jvp, args, atol=None, rtol=None, eps=_STEP, err_msg=""):
    """Raises AssertionError if f_jvp(primals, tangents) is not f's value and derivative along a random direction."""
    args = tuple(args)
    tangents = _directions(args, np.random.RandomState(0))
    value, tangent = f_jvp(args, tangents)
    _compare(value, f(*args), atol, rtol, f"{err_msg} primal")
    _compare(tangent, _difference(f, args, tangents, eps), atol, rtol, f"{err_msg} tangent")


def check_vjp(f, f_vjp, args, atol=None, rtol=None, eps=_STEP, err_msg=""):
    """Raises AssertionError if f_vjp(*primals) = (value, pullback) disagrees with f along random directions."""
    args = tuple(args)
    value, pullback = f_vjp(*args)
    _compare(value, f(*args), atol, rtol, f"{err_msg} primal")
    generator = np.random.RandomState(0)
    tangents = _directions(args, generator)
    change = _difference(f, args, tangents, eps)
    cotangent = _directions(value, generator)
    conjugate = lambda tree: tree_util.tree_map(lambda x: np.conj(x) if _moves(x) else x, tree)
    pulled_back = conjugate(tree_util.tree_map(np.asarray, pullback(conjugate(cotangent))))
    _compare(_inner(tangents, pulled_back), _inner(change, cotangent), atol, rtol, f"{err_msg} cotangent projection")


def _directions(tree, generator):
    """Random values with the shapes and dtypes of a tree; float0 zeros for leaves without a derivative."""

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
        return f(*tree_util.tree_map(lambda x, d: np.asarray(x + np.asarray(sign * eps, d.dtype) * d, d.dtype) if _moves(d) else x, args, tangents))

    def quotient(above, below):
        above, below = np.asarray(above), np.asarray(below)
        if not np.issubdtype(above.dtype, np.inexact) and above.dtype.kind != "V":
            return np.zeros(above.shape, [("float0", np.void, 0)])
        with np.errstate(invalid="ignore"):  # equal infinities have difference 0
            change = np.where(above == below, np.zeros((), above.dtype), above - below)
        return np.asarray(change * np.asarray(0.5 / eps, above.dtype), above.dtype)

    return tree_util.tree_map(quotient, moved(1.0), moved(-1.0))


def _inner(first, second):
    total = None  # gets the dtype of the products, which determines the tolerance
    for a, b in zip(tree_util.tree_leaves(first), tree_util.tree_leaves(second)):
        a, b = np.asarray(a), np.asarray(b)
        if _moves(a) and _moves(b):
            product = np.real(np.dot(np.conj(a).reshape(-1), b.reshape(-1)))
            total = product if total is None else np.add(total, product)
    return np.asarray(0.0 if total is None else total)


def _tolerance(given, dtypes):
    if isinstance(given, (int, float)):
        return given
    own = {np.dtype(dtype): tolerance for dtype, tolerance in (given or {}).items()}
    narrowed = [_core.canonical_dtype(dtype) for dtype in dtypes]
    return max(own.get(dtype, _TOLERANCES.get(dtype.name, 0)) for dtype in narrowed)


def _compare(got, expected, atol, rtol, message):
    first, structure = tree_util.tree_flatten(got)
    second, other = tree_util.tree_flatten(expected)
    assert structure == other, f"{message}: the result is a {structure}, expected a {other}"
    for a, b in zip(first, second):
        a, b = np.asarray(a), np.asarray(b)
        if not _moves(a):
            continue
        assert a.shape == b.shape, f"{message}: the result has shape {a.shape}, expected {b.shape}"
        # The tolerance of one element times the number of elements.
        absolute, relative = _tolerance(atol, (a.dtype, b.dtype)) * a.size, _tolerance(rtol, (a.dtype, b.dtype)) * b.size
        wide = np.complex128 if np.issubdtype(a.dtype, np.complexfloating) else np.float64
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), atol=absolute, rtol=relative, err_msg=message)


explain_missing(__name__)
