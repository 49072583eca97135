"""Writes math_cases.txt: arguments and results of every elementwise function, from the installed jax and from mpmath.

    python make_math_cases.py [OUTPUT]          (default: tests/data/math_cases.txt.tar.xz)

Run with the Python that has jax 0.10.2, scipy and mpmath; running it again gives the same file. Lines:

    NAME DTYPE          begins a function; following lines are its cases
    ARGUMENTS = RESULT [~ TRUTH]

Numbers are the bits of DTYPE in hexadecimal; a complex number is two of them. TRUTH is the correctly rounded float64
result, given for float64 special functions if it is finite.
"""
import os
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import mpmath
import numpy as np
from jax import lax

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

import recordings  # noqa: E402

jax.config.update("jax_enable_x64", True)
mpmath.mp.dps = 40
random = np.random.default_rng(20240501)
lines = []


def bits(x):
    x = np.asarray(x)
    if np.iscomplexobj(x):
        return bits(x.real) + " " + bits(x.imag)
    if x.dtype == np.bool_:
        return str(int(x))
    return format(int(x.view(f"u{x.dtype.itemsize}")), f"0{2 * x.dtype.itemsize}x")


def emit(name, dtype, arguments, results, truth=None):
    lines.append(f"{name} {np.dtype(dtype).name}")
    results = np.asarray(results)
    for i, row in enumerate(zip(*[a.ravel() for a in arguments])):
        text = " ".join(bits(a) for a in row) + " = " + bits(results.ravel()[i])
        if truth is not None:
            text += exact(truth, row)
        lines.append(text)


def exact(truth, row):
    if not all(np.isfinite(a) for a in row):
        return ""
    try:
        value = truth(*[mpmath.mpf(float(a)) for a in row])
        if mpmath.im(value) != 0:
            return ""
        value = np.float64(float(mpmath.re(value)))
    except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence, TypeError):
        return ""
    return " ~ " + bits(value) if np.isfinite(value) and abs(value) > 1e-300 else ""


def hard_points(dtype):
    info = np.finfo(dtype)
    inf, eps, big = np.inf, info.eps, info.max
    points = [0, info.tiny * 4, eps, 1e-3, 0.25, 0.5, 1 - eps, 1, 1 + eps, 1.5, 2, 2.5, 3, 3.5, 5, 8, 8.5, 10, 26.5, 50,
              87, 88.5, 89, 100, 700, 709, 711, 1e4, 1e10, 1e30, big, inf]
    return np.array(points, dtype)


def unary_points(dtype, low=-6.0, high=6.0):
    points = hard_points(dtype)
    spread = random.uniform(low, high, 40).astype(dtype)
    small = (10.0 ** random.uniform(-6, 2, 16) * random.choice([-1, 1], 16)).astype(dtype)
    return np.concatenate([points, -points, [dtype(np.nan)], spread, small]).astype(dtype)


def pairs(first, second):
    grid = np.meshgrid(first, second, indexing="ij")
    return grid[0].ravel(), grid[1].ravel()


def round_even(x):
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def log_abs_gamma(x):
    return mpmath.log(abs(mpmath.gamma(x)))


UNARY = {
    "exp": (lax.exp, None), "exp2": (lax.exp2, None), "expm1": (lax.expm1, None), "log": (lax.log, None),
    "log1p": (lax.log1p, None), "tanh": (lax.tanh, None), "sin": (lax.sin, None), "cos": (lax.cos, None),
    "tan": (lax.tan, None), "sqrt": (lax.sqrt, None), "rsqrt": (lax.rsqrt, None), "cbrt": (lax.cbrt, None),
    "floor": (lax.floor, None), "ceil": (lax.ceil, None), "round": (lax.round, None),
    "round_nearest_even": (round_even, None), "logistic": (lax.logistic, None), "sign": (lax.sign, None),
    "asin": (lax.asin, mpmath.asin), "acos": (lax.acos, mpmath.acos), "atan": (lax.atan, mpmath.atan),
    "sinh": (lax.sinh, mpmath.sinh), "cosh": (lax.cosh, mpmath.cosh), "asinh": (lax.asinh, mpmath.asinh),
    "acosh": (lax.acosh, mpmath.acosh), "atanh": (lax.atanh, mpmath.atanh), "erf": (lax.erf, mpmath.erf),
    "erfc": (lax.erfc, mpmath.erfc), "erf_inv": (lax.erf_inv, mpmath.erfinv), "lgamma": (lax.lgamma, log_abs_gamma),
    "digamma": (lax.digamma, mpmath.digamma),
    "bessel_i0e": (lax.bessel_i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x))),
    "bessel_i1e": (lax.bessel_i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x))),
}
UNIT_DOMAIN = {"asin", "acos", "atanh", "erf_inv"}


def real_cases(dtype):
    truth_for = (lambda t: t) if dtype is np.float64 else (lambda t: None)
    for name, (function, truth) in UNARY.items():
        reach = 1.0 if name in UNIT_DOMAIN else 6.0
        x = unary_points(dtype, -reach, reach)
        if truth is not None:
            # Poles and huge arguments take mpmath minutes and add nothing.
            inner, bound = truth, (30 if "bessel" in name else 1e4)
            truth = lambda v, inner=inner, bound=bound: inner(v) if abs(v) <= bound else mpmath.nan
        emit(name, dtype, [x], function(x), truth_for(truth))

    ends = np.array([0, -0.0, 0.5, -1, 1, 2, -3, -7.5, 1e10, np.inf, -np.inf, np.nan], dtype)
    a, b = pairs(ends, ends)
    emit("atan2", dtype, [a, b], lax.atan2(a, b))
    emit("pow", dtype, [a, b], lax.pow(a, b))
    emit("rem", dtype, [a, b], lax.rem(a, b))
    emit("maximum", dtype, [a, b], lax.max(a, b))
    emit("minimum", dtype, [a, b], lax.min(a, b))
    emit("nextafter", dtype, [a, b], lax.nextafter(a, b))
    a, b = random.uniform(-20, 20, 40).astype(dtype), random.uniform(-9, 9, 40).astype(dtype)
    emit("atan2", dtype, [a, b], lax.atan2(a, b))
    emit("pow", dtype, [np.abs(a), b], lax.pow(np.abs(a), b))
    emit("rem", dtype, [a, b], lax.rem(a, b))

    x = np.array([-1, 0, 0.5, 1, 1.01, 1.5, 2, 3, 4, 5.5, 10, 30, 60, np.inf, np.nan], dtype)
    q = np.array([-3, -2, -1.5, -0.5, 0, 0.1, 0.5, 1, 1.5, 2, 5, 10, 100, 1e6, np.inf, np.nan], dtype)
    a, b = pairs(x, q)
    zeta = lambda s, q: mpmath.zeta(s, q) if s > 1 and q > 0 and q < 1e4 else mpmath.nan
    emit("zeta", dtype, [a, b], lax.zeta(a, b), truth_for(zeta))
    n = np.array([-1, 0, 0.5, 1, 2, 3, 5, 10, np.inf, np.nan], dtype)
    a, b = pairs(n, q)
    polygamma = lambda n, x: mpmath.polygamma(int(n), x) if n >= 0 and n == int(n) and 0 < x < 1e4 else mpmath.nan
    emit("polygamma", dtype, [a, b], lax.polygamma(a, b), truth_for(polygamma))

    ends = np.array([-1, 0, 1e-3, 0.1, 0.5, 1, 2, 5, 10, 30, 100, np.inf, np.nan], dtype)
    a, b = pairs(ends, ends)
    more = (10.0 ** random.uniform(-2, 2, 40)).astype(dtype), (10.0 ** random.uniform(-2, 2, 40)).astype(dtype)
    a, b = np.concatenate([a, more[0]]), np.concatenate([b, more[1]])
    lower = lambda a, x: mpmath.gammainc(a, 0, x, regularized=True) if a > 0 and x > 0 else mpmath.nan
    upper = lambda a, x: mpmath.gammainc(a, x, regularized=True) if a > 0 and x > 0 else mpmath.nan
    emit("igamma", dtype, [a, b], lax.igamma(a, b), truth_for(lower))
    emit("igammac", dtype, [a, b], lax.igammac(a, b), truth_for(upper))
    emit("igamma_grad_a", dtype, [a, b], lax.igamma_grad_a(a, b))
    emit("random_gamma_grad", dtype, [a, b], lax.random_gamma_grad(a, b))

    ends = np.array([-1, 0, 0.1, 1, 2, np.inf, np.nan], dtype)
    x = np.array([-0.5, 0, 1e-3, 0.5, 0.9, 1, np.nan], dtype)
    a, b, c = [g.ravel() for g in np.meshgrid(ends, ends, x, indexing="ij")]
    more = [random.uniform(0.05, 50, 60).astype(dtype), random.uniform(0.05, 50, 60).astype(dtype),
            random.uniform(0, 1, 60).astype(dtype)]
    a, b, c = [np.concatenate(p) for p in zip((a, b, c), more)]
    beta = lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True) if a > 0 and b > 0 and 0 < x < 1 else mpmath.nan
    emit("betainc", dtype, [a, b, c], lax.betainc(a, b, c), truth_for(beta))

    x = random.normal(size=12).astype(dtype) * 2
    for power in (-7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 10, 13):
        emit(f"integer_pow{power}", dtype, [x], lax.integer_pow(x, power))


COMPLEX_UNARY = ["exp", "exp2", "expm1", "log", "log1p", "logistic", "sqrt", "rsqrt", "tanh", "tan", "sin", "cos", "sinh",
                 "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sign", "abs", "square"]


def complex_cases(dtype):
    part = np.float32 if dtype is np.complex64 else np.float64
    ends = np.array([0, -0.0, 0.5, -1, 1, -40, np.finfo(part).max, np.inf, -np.inf, np.nan], part)
    near = np.concatenate([random.uniform(-3, 3, 20), random.uniform(-0.1, 0.1, 6)]).astype(part)
    other = np.concatenate([random.uniform(-3, 3, 20), random.uniform(-0.1, 0.1, 6)]).astype(part)
    a, b = pairs(ends, ends)
    a, b = np.concatenate([a, near]), np.concatenate([b, other])
    x = np.empty(a.shape, dtype)
    x.real, x.imag = a, b
    for name in COMPLEX_UNARY:
        emit(name, dtype, [x], getattr(lax, name)(x))
    few = np.array([0, -0.0, 1, -2, np.inf, -np.inf, np.nan], part)
    a, b = pairs(few, few)
    y = np.empty(a.shape, dtype)
    y.real, y.imag = a, b
    left, right = pairs(y[::4], y[::5])
    spread = random.normal(size=(2, 20)) + 1j * random.normal(size=(2, 20))
    left, right = np.concatenate([left, spread[0].astype(dtype)]), np.concatenate([right, spread[1].astype(dtype)])
    emit("divide", dtype, [left, right], lax.div(left, right))
    emit("multiply", dtype, [left, right], lax.mul(left, right))
    emit("pow", dtype, [left, right], lax.pow(left, right))
    emit("maximum", dtype, [left, right], lax.max(left, right))
    emit("minimum", dtype, [left, right], lax.min(left, right))
    # lax orders real numbers only; jax.numpy defines the order of complex ones.
    for name, function in (("lt", jnp.less), ("le", jnp.less_equal), ("gt", jnp.greater), ("ge", jnp.greater_equal),
                           ("eq", jnp.equal), ("ne", jnp.not_equal)):
        emit(name, dtype, [left, right], function(left, right))


def integer_cases(dtype):
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.max, 0, 1, 3, 100]
    values += [-1, -7] if info.min < 0 else [info.max // 3]
    x = np.array(values, dtype)
    a, b = pairs(x, x)
    emit("integer_div", dtype, [a, b], lax.div(a, b))
    emit("integer_rem", dtype, [a, b], lax.rem(a, b))
    emit("multiply_high", dtype, [a, b], lax.mulhi(a, b))
    amounts = np.array([0, 1, info.bits - 1, info.bits, info.bits + 1, 127, 0 if info.min == 0 else -1], dtype)
    a, b = pairs(x, amounts)
    emit("shift_left", dtype, [a, b], lax.shift_left(a, b))
    emit("shift_right_logical", dtype, [a, b], lax.shift_right_logical(a, b))
    emit("shift_right_arithmetic", dtype, [a, b], lax.shift_right_arithmetic(a, b))
    emit("population_count", dtype, [x], lax.population_count(x))
    emit("count_leading_zeros", dtype, [x], lax.clz(x))
    emit("integer_sign", dtype, [x], lax.sign(x))
    if info.min < 0:
        emit("integer_abs", dtype, [x], lax.abs(x))


def bit_cases():
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        info = ml_dtypes.finfo(dtype)
        x = np.array([0, -0.0, 1, -1, 1.5, 65504 if dtype is np.float16 else 65536, float(info.max), float(info.tiny),
                      np.inf, -np.inf, np.nan] + list(random.normal(size=20)) + list(10.0 ** random.uniform(-4, 4, 20)))
        x = x.astype(dtype)
        for exponent, mantissa in ((5, 10), (8, 7), (8, 23), (4, 3), (5, 2), (2, 1), (8, 0), (11, 52), (3, 20)):
            emit(f"reduce_precision_{exponent}_{mantissa}", dtype, [x], lax.reduce_precision(x, exponent, mantissa))
        if np.dtype(dtype).itemsize == 2:
            a, b = pairs(x[:11], x[:11])
            emit("nextafter", dtype, [a, b], lax.nextafter(a, b))


def generator_cases():
    """Lines 'STATE = NEW STATE ; BITS'; the name has the algorithm and shape, the dtype is that of the bits."""
    everything = (1 << 64) - 1
    states = [(1 | 2 << 32, 3 | 4 << 32), (0x123456789ABCDEF0, 5), (7, everything), (everything, (1 << 32) - 1)]
    for label, algorithm in (("philox", lax.RandomAlgorithm.RNG_PHILOX), ("default", lax.RandomAlgorithm.RNG_DEFAULT),
                             ("threefry", lax.RandomAlgorithm.RNG_THREE_FRY)):
        for dtype in ("uint8", "uint16", "uint32", "uint64"):
            for shape in ((), (0,), (1,), (5,), (8,), (13,), (3, 3), (2, 6), (6, 3), (3, 5, 7), (7, 3, 5), (3, 4, 2)):
                lines.append(f"{label}:{'x'.join(map(str, shape))} {dtype}")
                for state in states if shape in ((5,), (3, 3)) else states[:1]:
                    new, out = lax.rng_bit_generator(np.array(state, np.uint64), shape, dtype=dtype, algorithm=algorithm)
                    words = [" ".join(bits(v) for v in np.asarray(part).ravel()) for part in (np.array(state, np.uint64),
                                                                                              new, out)]
                    lines.append(f"{words[0]} = {words[1]} ; {words[2]}")


def main():
    for dtype in (np.float32, np.float64):
        real_cases(dtype)
    for dtype in (np.complex64, np.complex128):
        complex_cases(dtype)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        integer_cases(dtype)
    bit_cases()
    generator_cases()
    comment = f"# Made by make_math_cases.py with jax {jax.__version__}; see there for the format.\n"
    recordings.write(recordings.output("math_cases.txt"), comment + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
