"""Calls of jax.numpy's functions on sets."""

from makers import *

INTS = np.array([3, 1, 2, 3, 1, 1, 7], np.int32)
OTHER = np.array([2, 7, 9, 2, 0, 3], np.int32)
DISTINCT = np.array([5, 1, 3], np.int32)
DISTINCT_TOO = np.array([3, 9, 5, 0], np.int32)
NANS = np.array([np.nan, 1.0, np.nan, 0.0, -0.0, 1.0], np.float32)
ROWS = np.array([[1, 2], [3, 4], [1, 2], [0, 5]], np.int32)
CNANS = np.array([1j, complex(np.nan, 1), complex(1, np.nan), 1j], np.complex64)


def sized(name, **options):
    return [
        case(name, INTS, OTHER, size=6, **options),
        case(name, INTS, OTHER, **options),
        case(name, INTS, OTHER, size=9, fill_value=-1, **options),
        case(name, INTS, OTHER, size=2, **options),
        case(name, INTS, f32(3), **options),
        case(name, ROWS, OTHER, **options),
        case(name, i32(0), OTHER, **options),
        case(name, i32(0), OTHER, size=3, **options),
        case(name, i32(0), i32(0), **options),
        case(name, NANS, NANS, **options),
        case(name, [1, 2], OTHER, **options),
        case(name, 3, OTHER, **options),
        case(name, b1(4), b1(2), **options),
    ]


def distinct(name, **options):
    return [
        case(name, DISTINCT, DISTINCT_TOO, assume_unique=True, **options),
        case(name, DISTINCT, DISTINCT_TOO, assume_unique=True, size=5, **options),
        case(name, DISTINCT, DISTINCT_TOO, assume_unique=True, size=5, fill_value=77, **options),
    ]


CASES = [
    case("numpy.unique", INTS, size=5), case("numpy.unique", INTS), case("numpy.unique", NANS), case("numpy.unique", NANS, equal_nan=False),
    case("numpy.unique", f32(2, 3), size=6, transforms=True), case("numpy.unique", INTS, size=6, fill_value=-9), case("numpy.unique", INTS, size=2),
    case("numpy.unique", INTS, return_index=True), case("numpy.unique", INTS, return_inverse=True), case("numpy.unique", INTS, return_counts=True),
    case("numpy.unique", INTS, True, True, True), case("numpy.unique", INTS, True, True, True, size=6, jit=True, vmap=True),
    case("numpy.unique", INTS, True, True, True, size=2), case("numpy.unique", INTS, True, True, True, size=7, fill_value=4),
    case("numpy.unique", ROWS), case("numpy.unique", ROWS, return_inverse=True), case("numpy.unique", ROWS, axis=0),
    case("numpy.unique", ROWS, True, True, True, axis=0), case("numpy.unique", ROWS, True, True, True, axis=1), case("numpy.unique", ROWS, axis=-2, size=5, fill_value=8),
    case("numpy.unique", CNANS), case("numpy.unique", CNANS, equal_nan=False, return_counts=True), case("numpy.unique", b1(6)), case("numpy.unique", bf16(4)),
    case("numpy.unique", f32(0)), case("numpy.unique", f32(0), size=2), case("numpy.unique", f32(0), size=2, fill_value=1.0),
    case("numpy.unique", f32(0), True, True, True), case("numpy.unique", zeros((3, 0)), True, True, True, axis=0),
    case("numpy.unique", 3.0), case("numpy.unique", [1, 2]), case("numpy.unique", INTS, axis=1), case("numpy.unique", i32(5, low=0, high=3), x64=True),
    case("numpy.unique", INTS, sorted=False), check("unique under jit", lambda jax: jax.jit(jax.numpy.unique)(jax.numpy.arange(3))),
    case("numpy.unique_all", INTS, size=5), case("numpy.unique_all", NANS), case("numpy.unique_all", ROWS), case("numpy.unique_all", INTS, size=8, fill_value=0),
    case("numpy.unique_counts", INTS, size=5), case("numpy.unique_counts", NANS), case("numpy.unique_counts", ROWS),
    case("numpy.unique_inverse", INTS, size=5), case("numpy.unique_inverse", NANS), case("numpy.unique_inverse", ROWS),
    case("numpy.unique_values", INTS, size=5), case("numpy.unique_values", NANS), case("numpy.unique_values", 2.0),
    *sized("numpy.union1d"), *sized("numpy.setdiff1d"), *sized("numpy.setxor1d"), *sized("numpy.intersect1d"),
    *distinct("numpy.setdiff1d"), *distinct("numpy.setxor1d"), *distinct("numpy.intersect1d"), *distinct("numpy.intersect1d", return_indices=True),
    case("numpy.intersect1d", INTS, OTHER, return_indices=True), case("numpy.intersect1d", INTS, OTHER, return_indices=True, size=5),
    case("numpy.intersect1d", INTS, OTHER, return_indices=True, size=2, fill_value=0),
    check("union1d under jit", lambda jax: jax.jit(jax.numpy.union1d)(jax.numpy.arange(3), jax.numpy.arange(2))),
    check("setdiff1d under jit", lambda jax: jax.jit(jax.numpy.setdiff1d)(jax.numpy.arange(3), jax.numpy.arange(2))),
    check("setxor1d under jit", lambda jax: jax.jit(jax.numpy.setxor1d)(jax.numpy.arange(3), jax.numpy.arange(2))),
    check("intersect1d under jit", lambda jax: jax.jit(jax.numpy.intersect1d)(jax.numpy.arange(3), jax.numpy.arange(2))),
    case("numpy.unique", f32(6), grad=True), case("numpy.unique", f32(3, 2), axis=0, grad=True), case("numpy.union1d", f32(3), f32(2), grad=True),
    case("numpy.setdiff1d", f32(4), f32(2), grad=True), case("numpy.setxor1d", f32(4), f32(2), size=5, transforms=True),
    case("numpy.intersect1d", f32(4), f32(2), size=5, transforms=True), case("numpy.union1d", f32(3), f32(2), size=6, fill_value=0.5, transforms=True),
    case("numpy.isin", f32(3, 4), f32(4)), case("numpy.isin", INTS, OTHER, jit=True, vmap=True), case("numpy.isin", INTS, OTHER, invert=True),
    case("numpy.isin", ROWS, OTHER, method="binary_search"), case("numpy.isin", ROWS, OTHER, method="binary_search", invert=True),
    case("numpy.isin", ROWS, OTHER, method="sort"), case("numpy.isin", INTS, OTHER, method="sort", invert=True),
    case("numpy.isin", DISTINCT, DISTINCT_TOO, method="sort", assume_unique=True), case("numpy.isin", INTS, OTHER, method="compare_all"),
    case("numpy.isin", INTS, OTHER, method="magic"), case("numpy.isin", INTS, i32(0)), case("numpy.isin", i32(0), OTHER, invert=True),
    case("numpy.isin", 3, OTHER), case("numpy.isin", INTS, f32(3)), case("numpy.isin", NANS, NANS), case("numpy.isin", [1], OTHER),
]
