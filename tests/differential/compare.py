"""Compares two outcomes of evaluate.py: values within a tolerance for their dtype, everything else exactly."""

import builtins

import ml_dtypes
import numpy as np

# Maximum relative error; the absolute one is a twentieth. Numbers of 16 bits and fewer are computed in float32 and rounded:
# two units in the last place for 16 bits, one for fewer.
TOLERANCES = {
    "float64": 1e-11, "complex128": 1e-11, "float32": 2e-5, "complex64": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2,
}
GRADIENT_FACTORS = {"float64": 10, "complex128": 10, "float32": 10, "complex64": 10}  # other dtypes: 2

# Error classes that users name in addition to the built-in ones; others are compared by their first built-in base class.
PUBLIC_ERRORS = {
    "ConcretizationTypeError", "KeyReuseError", "NonConcreteBooleanIndexError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError", "TypePromotionError",
}


def difference(expected, got, tolerance=None, mode="eager"):
    """A description of how `got` differs from jax's `expected`; empty if they agree."""
    if got[0] == "missing":
        return "does not exist"
    if expected[0] == "missing":
        return "jax has no such name"
    if expected[0] == "crash":
        return f"jax itself: {expected[1]}"
    if expected[0] == "error":
        if got[0] != "error":
            return f"jax raises {expected[1][0]}: {first_line(expected[2])}\n   capibara returns {brief(got[1])}"
        wanted = public_class(expected[1])
        if wanted in got[1] or (wanted == "AssertionError" and {"TypeError", "ValueError"} & set(got[1])):
            return ""
        return (f"jax raises {expected[1][0]}: {first_line(expected[2])}\n"
                f"   capibara raises {got[1][0]}: {first_line(got[2])}")
    if got[0] == "error":
        return f"raises {got[1][0]}: {first_line(got[2])}\n   jax returns {brief(expected[1])}"
    if got[0] != "value":
        return f"{got[0]}: {got[1]}"
    return tree_difference(expected[1], got[1], tolerance, mode == "grad")


def small_float_tolerance(name):
    return float(ml_dtypes.finfo(name).eps)


def first_line(text):
    return text.splitlines()[0][:200] if text else ""


def public_class(names):
    for name in names:
        if name in PUBLIC_ERRORS or isinstance(getattr(builtins, name, None), type):
            return name
    return names[0]


def tree_difference(expected, got, tolerance, gradient, place=""):
    kind = expected[0]
    where = f" at {place}" if place else ""
    if kind != got[0]:
        return f"expected {brief(expected)}, got {brief(got)}{where}"
    if kind in ("array", "numpy", "key"):
        return array_difference(expected, got, tolerance, gradient, where)
    if kind == "python":
        if expected[1] != got[1]:
            return f"expected a Python {expected[1]}, got {got[1]} {got[2]!r}{where}"
        if expected[1] in ("float", "complex"):
            return value_difference(np.asarray(expected[2]), np.asarray(got[2]), tolerance or 1e-6, where)
        return "" if expected[2] == got[2] else f"expected {expected[2]!r}, got {got[2]!r}{where}"
    if kind in ("list", "tuple", "named", "dict"):
        if kind == "named" and (expected[1], list(expected[2])) != (got[1], list(got[2])):
            return f"expected a {expected[1]}{expected[2]}, got {got[1]}{got[2]}{where}"
        if len(expected[-1]) != len(got[-1]):
            return f"expected {len(expected[-1])} parts, got {len(got[-1])}{where}"
        for number, (first, second) in enumerate(zip(expected[-1], got[-1])):
            inner = f"{place}[{number}]"
            if kind == "dict":
                if first[0] != second[0]:
                    return f"expected the key {first[0]}, got {second[0]}{where}"
                inner, first, second = f"{place}[{first[0]}]", first[1], second[1]
            found = tree_difference(first, second, tolerance, gradient, inner)
            if found:
                return found
        return ""
    return "" if expected == got else f"expected {brief(expected)}, got {brief(got)}{where}"


def array_difference(expected, got, tolerance, gradient, where):
    if expected[1:-1] != got[1:-1]:
        return f"expected {brief(expected)}, got {brief(got)}{where}"
    name = expected[1]
    values, others = np.asarray(expected[-1]), np.asarray(got[-1])
    if values.shape != others.shape:
        return f"expected values of shape {values.shape}, got {others.shape}{where}"
    if name in TOLERANCES or name.startswith("float"):
        wide = np.complex128 if name.startswith("complex") else np.float64
        allowed = tolerance or TOLERANCES.get(name) or small_float_tolerance(name)
        if gradient:
            allowed *= GRADIENT_FACTORS.get(name, 2)
        return value_difference(values.astype(wide), others.astype(wide), allowed, where)
    if values.dtype.kind not in "biuSUO":  # integers of at most four bits
        values, others = values.astype(np.int32), others.astype(np.int32)
    if np.array_equal(values, others):
        return ""
    index = tuple(np.argwhere(values != others)[0])
    return wrong_values(values, others, index, where)


def value_difference(expected, got, tolerance, where):
    if expected.dtype.kind == "c":
        return (value_difference(expected.real, got.real, tolerance, f" (real part){where}")
                or value_difference(expected.imag, got.imag, tolerance, f" (imaginary part){where}"))
    with np.errstate(all="ignore"):
        close = np.isfinite(expected) & (np.abs(expected - got) <= tolerance * np.abs(expected) + tolerance / 20)
        close |= (expected == got) | (np.isnan(expected) & np.isnan(got))
    if close.all():
        return ""
    return wrong_values(expected, got, tuple(np.argwhere(~close)[0]), where)


def wrong_values(expected, got, index, where):
    wrong = f"{got[index]!r} in place of {expected[index]!r} at {list(map(int, index))}"
    if expected.size <= 12:
        return f"{wrong}{where}\n   expected {listed(expected)}\n   got      {listed(got)}"
    return f"{wrong} of {list(expected.shape)}{where}"


def listed(values):
    return np.array2string(values, separator=", ", max_line_width=200, precision=8).replace("\n", "")


def brief(tree):
    """A short description of a result."""
    kind = tree[0]
    if kind == "array":
        weak = ", weak_type" if tree[3] else ""
        small = f" = {listed(np.asarray(tree[4]))}" if np.asarray(tree[4]).size <= 4 else ""
        return f"{tree[1]}{list(tree[2])}{weak}{small}"
    if kind in ("numpy", "key"):
        return f"{kind} {tree[1]}{list(tree[2])}"
    if kind == "python":
        return f"{tree[1]} {tree[2]!r}"
    if kind in ("list", "tuple"):
        return f"{kind}({', '.join(map(brief, tree[1][:4]))}{', ...' if len(tree[1]) > 4 else ''})"
    if kind == "named":
        return f"{tree[1]}({', '.join(map(brief, tree[3][:4]))})"
    return " ".join(map(str, tree[:2]))
