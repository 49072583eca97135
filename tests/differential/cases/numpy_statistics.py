"""Calls of jax.numpy's quantiles, covariances, counts and histograms."""

from makers import *

NAN = np.array([[1.0, np.nan, -2.0, 0.5], [np.nan, np.nan, np.nan, np.nan], [3.0, 3.0, -0.0, 2.0]], np.float32)
QUARTERS = np.array([0.0, 0.25, 0.6, 1.0], np.float32)
COUNTS = np.array([0, 3, 1, 3, 3, 6], np.int32)
EDGES = np.array([-2.0, -0.5, 0.25, 1.0], np.float32)
METHODS = ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"]


def quantiles(name, q, many):
    return [
        case(name, f32(3, 4), q),
        case(name, f32(5), many, transforms=True),
        case(name, f32(3, 4), many, axis=0, transforms=True),
        case(name, f32(2, 3, 4), q, axis=(0, 2), keepdims=True),
        case(name, f32(2, 3, 4), many, axis=(-1, 1)),
        case(name, f32(2, 3, 4), many, axis=1, keepdims=True),
        case(name, f32(3, 4), many, keepdims=True),
        *(case(name, f32(3, 5), many, axis=1, method=method) for method in METHODS),
        *(case(name, NAN, q, axis=1, method=method) for method in METHODS),
        case(name, NAN, many, axis=0),
        case(name, NAN, q),
        case(name, NAN, many, axis=1, method="inverted_cdf", keepdims=True),
        case(name, f32(3, 4), many, axis=1, method="inverted_cdf", weights=f32(4, low=0.1)),
        case(name, f32(3, 4), q, method="inverted_cdf", weights=f32(3, 4, low=0.1), keepdims=True),
        case(name, f32(3, 4), q, axis=0, method="inverted_cdf", weights=f32(3, low=-1.0)),
        case(name, f32(3, 4), q, axis=0, weights=f32(3)),
        case(name, f32(3, 4), q, axis=0, method="inverted_cdf", weights=f32(4)),
        case(name, f32(3, 4), q, method="inverted_cdf", weights=f32(4)),
        case(name, i32(7), q),
        case(name, bf16(7), q),
        case(name, f16(7), many, method="nearest"),
        case(name, c64(4), q),
        case(name, f32(4), q, method="magic"),
        case(name, f32(4), f32(2, 2)),
        case(name, f32(4), q, overwrite_input=True),
        case(name, f32(4), q, out=1),
        case(name, f32(4), q, axis=3),
        case(name, f32(4), q, axis=(0, 0)),
        case(name, f32(4), q, axis=[0]),
        case(name, [1.0], q),
        case(name, f32(), q),
        case(name, f32(4), 1),
        case(name, f32(4), q, x64=True),
    ]


def medians(name):
    return [
        case(name, f32(3, 4)),
        case(name, f32(3, 4), axis=0, transforms=True),
        case(name, f32(2, 3, 4), axis=(0, 2), keepdims=True),
        case(name, NAN, axis=1),
        case(name, NAN),
        case(name, i32(6)),
        case(name, bf16(5)),
        case(name, f32()),
        case(name, f32(3), overwrite_input=True),
        case(name, f32(3), axis=1),
        case(name, f64(4), x64=True),
    ]


CASES = [
    *quantiles("numpy.quantile", 0.3, QUARTERS), *quantiles("numpy.nanquantile", 0.3, QUARTERS),
    *quantiles("numpy.percentile", 30.0, QUARTERS * 100)[:16], *quantiles("numpy.nanpercentile", 30, QUARTERS * 100)[:16],
    case("numpy.percentile", f32(5), 50), case("numpy.percentile", f32(5), i32(2, low=0, high=100)),
    *medians("numpy.median"), *medians("numpy.nanmedian"),
    case("numpy.cov", f32(3, 5)), case("numpy.cov", f32(3, 5), rowvar=False, transforms=True), case("numpy.cov", f32(5)), case("numpy.cov", f32(5), f32(5)),
    case("numpy.cov", f32(2, 5), f32(3, 5), bias=True), case("numpy.cov", f32(5, 2), f32(5, 3), rowvar=False), case("numpy.cov", f32(3, 5), ddof=0),
    case("numpy.cov", f32(3, 5), fweights=i32(5, low=1, high=4)), case("numpy.cov", f32(3, 5), aweights=f32(5, low=0.5)),
    case("numpy.cov", f32(3, 5), fweights=i32(5, low=1, high=4), aweights=f32(5, low=0.5)), case("numpy.cov", f32(3, 5), aweights=f32(5, low=0.5), ddof=0),
    case("numpy.cov", c64(3, 5)), case("numpy.cov", i32(3, 5)), case("numpy.cov", f32(3, 5), dtype=np.float16, tolerance=1e-2), case("numpy.cov", f32(3, 5), dtype=np.int32),
    case("numpy.cov", f32(0, 5)), case("numpy.cov", f32(3, 0)), case("numpy.cov", f32(2, 3, 4)), case("numpy.cov", f32(3, 5), fweights=f32(5)),
    case("numpy.cov", f32(3, 5), fweights=i32(4)), case("numpy.cov", f32(3, 5), aweights=f32(5, 1)), case("numpy.cov", [1.0, 2.0]),
    case("numpy.cov", f32(1, 5)), case("numpy.cov", f32(3, 1)), case("numpy.cov", f32(5, 1), rowvar=False),
    case("numpy.corrcoef", f32(3, 5)), case("numpy.corrcoef", f32(3, 5), rowvar=False), case("numpy.corrcoef", f32(5), f32(5)), case("numpy.corrcoef", c64(3, 5)),
    case("numpy.corrcoef", f32(5)), case("numpy.corrcoef", i32(2, 4)), case("numpy.corrcoef", f32(3, 5), dtype=np.int32), case("numpy.corrcoef", f32(2, 4), dtype=np.complex64),
    case("numpy.bincount", COUNTS, length=5), case("numpy.bincount", COUNTS), case("numpy.bincount", COUNTS, f32(6), transforms=False), case("numpy.bincount", COUNTS, minlength=10),
    case("numpy.bincount", COUNTS, f32(6), length=7, transforms=True), case("numpy.bincount", np.array([-1, 2, -3], np.int32)), case("numpy.bincount", i32(0)),
    case("numpy.bincount", b1(5)), case("numpy.bincount", u8(5)), case("numpy.bincount", f32(3)), case("numpy.bincount", i32(2, 2)), case("numpy.bincount", COUNTS, f32(3)),
    case("numpy.bincount", COUNTS, x64=True), case("numpy.bincount", COUNTS, i32(6)), case("numpy.bincount", COUNTS, bf16(6)),
    case("numpy.median", NAN, axis=0, grad=True), case("numpy.nanmedian", NAN, axis=0, grad=True), case("numpy.quantile", array([1.0, 1.0, 2.0]), 0.5, grad=True),
    case("numpy.corrcoef", f32(2, 6), transforms=True), case("numpy.cov", c64(2, 4), transforms=True), case("numpy.histogram", f32(9), EDGES, density=True, transforms=True),
    case("numpy.histogram", HARD32[5:], bins=3, range=(-3, 3)), case("numpy.histogram", f64(9), bins=3, x64=True), case("numpy.cov", f64(2, 4), x64=True),
    case("numpy.histogram2d", f32(9), f32(9), bins=2, transforms=True), case("numpy.quantile", f64(5), array([0.1, 0.9]), x64=True),
    check("histogram of traced bins", lambda jax: jax.jit(lambda n: jax.numpy.histogram(jax.numpy.ones(3), n))(2)),
    check("bincount of a traced length", lambda jax: jax.jit(lambda n: jax.numpy.bincount(jax.numpy.arange(3), length=n))(2)),
    check("bincount under jit", lambda jax: jax.jit(jax.numpy.bincount)(jax.numpy.arange(3))),
    case("numpy.histogram_bin_edges", f32(6)), case("numpy.histogram_bin_edges", f32(6), bins=4), case("numpy.histogram_bin_edges", i32(6), bins=3, range=(0, 9)),
    case("numpy.histogram_bin_edges", f32(6), bins=EDGES), case("numpy.histogram_bin_edges", full(3, 2.0)), case("numpy.histogram_bin_edges", f32(6), bins="auto"),
    case("numpy.histogram_bin_edges", f32(6), range=f32(3)), case("numpy.histogram_bin_edges", f32(0)), case("numpy.histogram_bin_edges", f32(4), bins=2.5),
    case("numpy.histogram_bin_edges", f32(4), bins=0), case("numpy.histogram_bin_edges", f32(4), 3, range=array([0.0, 1.0])),
    case("numpy.histogram", f32(20)), case("numpy.histogram", f32(4, 5), bins=4, transforms=True), case("numpy.histogram", f32(20), bins=EDGES),
    case("numpy.histogram", f32(20), bins=5, range=(-1, 1.5)), case("numpy.histogram", f32(20), bins=4, weights=f32(20, low=0.1), transforms=True),
    case("numpy.histogram", f32(20), bins=4, density=True), case("numpy.histogram", i32(20), bins=5), case("numpy.histogram", i32(20), weights=i32(20), density=True),
    case("numpy.histogram", f32(20), weights=f32(4)), case("numpy.histogram", f32(20), bins=[0, 1]), case("numpy.histogram", full(4, 1.0), bins=3),
    case("numpy.histogram2d", f32(20), f32(20)), case("numpy.histogram2d", f32(20), f32(20), bins=[3, 4]), case("numpy.histogram2d", f32(20), f32(20), bins=EDGES),
    case("numpy.histogram2d", f32(20), f32(20), bins=[EDGES, 3], density=True), case("numpy.histogram2d", f32(20), f32(20), bins=3, range=[(-1, 1), None]),
    case("numpy.histogram2d", f32(20), f32(20), bins=3, weights=f32(20)), case("numpy.histogram2d", f32(20), f32(19)),
    case("numpy.histogram2d", f32(20), f32(20), bins=[3]), case("numpy.histogram2d", i32(20), f32(20), bins=2),
    case("numpy.histogramdd", f32(20, 3), bins=2), case("numpy.histogramdd", f32(20, 2), bins=[2, 3], transforms=True), case("numpy.histogramdd", f32(20, 2), bins=(EDGES, EDGES)),
    case("numpy.histogramdd", f32(20, 2), bins=3, range=((-1, 1), (0, 1))), case("numpy.histogramdd", f32(20, 2), bins=3, weights=f32(20), density=True),
    case("numpy.histogramdd", f32(20, 2), bins=[2, 3, 4]), case("numpy.histogramdd", f32(20, 2), bins=3, weights=f32(3)),
    case("numpy.histogramdd", f32(20, 2), bins=3, range=[(0, 1)]), case("numpy.histogramdd", i32(20, 2), bins=3), case("numpy.histogramdd", f32(20)),
]
