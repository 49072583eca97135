"""Calls of jax.numpy's reductions, their NaN-skipping variants, averages and running sums."""

from makers import *

NAN = np.array([[1.0, np.nan, -2.0, 0.5], [np.nan, np.nan, np.nan, np.nan], [3.0, 3.0, -0.0, np.inf]], np.float32)
SOME_NAN = np.array([[1.0, np.nan, -2.0, 0.5], [2.0, 4.0, np.nan, 1.0], [3.0, 3.0, -0.25, 7.0]], np.float32)
TIES = np.array([[1.0, 2.0, 2.0], [2.0, 0.0, -1.0]], np.float32)
MASK = np.array([[True, False, True, True], [False, False, True, False], [False, False, False, False]])


def sums(name):
    return [
        case(name, f32(3, 4)),
        case(name, f32(2, 3, 4), axis=0, transforms=True),
        case(name, f32(2, 3, 4), axis=-1, keepdims=True),
        case(name, f32(2, 3, 4), axis=(0, 2)),
        case(name, f32(2, 3, 4), axis=(-1, 0), keepdims=True),
        case(name, f32(3, 4), axis=()),
        case(name, i8(3, 4)),
        case(name, u8(3, 4)),
        case(name, i16(4)),
        case(name, b1(3, 4), axis=1),
        case(name, c64(3, 4)),
        case(name, bf16(3, 4)),
        case(name, f16(5)),
        case(name, f32(0, 3), axis=0),
        case(name, f32()),
        case(name, 3.0),
        case(name, 2),
        case(name, True),
        case(name, f32(3, 4), where=MASK),
        case(name, f32(3, 4), where=MASK, initial=2.0, axis=1, grad=True),
        case(name, i32(3, 4), dtype=np.float32),
        case(name, f32(3, 4), dtype=np.int32),
        case(name, bf16(3, 4), dtype=ml_dtypes.bfloat16),
        case(name, i32(3, 4), initial=7),
        case(name, f32(3, 4), initial=f32(2)),
        case(name, f32(3, 4), where=i32(3, 4)),
        case(name, f32(3, 4), axis=2),
        case(name, f32(3, 4), axis=(0, 0)),
        case(name, [1.0, 2.0]),
        case(name, f32(3, 4), out=1),
        case(name, i32(3), x64=True),
        case(name, i8(3), x64=True),
    ]


def promotes(name):
    return [
        case(name, i8(3, 4), promote_integers=False),
        case(name, b1(3, 4), promote_integers=False),
        case(name, b1(3, 4), dtype=np.bool_),
        case(name, u16(3, 4), promote_integers=True, axis=0),
    ]


def extrema(name):
    return [
        case(name, f32(3, 4)),
        case(name, TIES, transforms=True),
        case(name, TIES, axis=1, grad=True),
        case(name, f32(2, 3, 4), axis=(0, 2), keepdims=True),
        case(name, i8(3, 4), axis=0),
        case(name, u8(3, 4), axis=-1),
        case(name, b1(3, 4)),
        case(name, c64(3, 4)),
        case(name, bf16(3, 4), axis=0),
        case(name, HARD32),
        case(name, HARD_I32),
        case(name, f32()),
        case(name, 3.5),
        case(name, f32(0, 3)),
        case(name, f32(0, 3), axis=0),
        case(name, f32(0, 3), axis=1),
        case(name, f32(0, 3), axis=0, initial=-1.0),
        case(name, f32(3, 4), where=MASK),
        case(name, f32(3, 4), where=MASK, initial=0.25, axis=1),
        case(name, i32(3, 4), where=MASK, initial=3, axis=0),
        case(name, u32(3, 4), where=MASK, initial=3, axis=0),
        case(name, f32(3, 4), initial=f32(1)),
        case(name, f32(3, 4), axis=2),
        case(name, [1, 2]),
        case(name, f8(4)),
    ]


def truths(name):
    return [
        case(name, b1(3, 4)),
        case(name, f32(3, 4), axis=0),
        case(name, i32(3, 4), axis=(0, 1), keepdims=True),
        case(name, c64(3, 4), axis=1),
        case(name, np.array([1j, 0j], np.complex64)),
        case(name, HARD32),
        case(name, b1(0, 3), axis=0),
        case(name, 0.0),
        case(name, b1(3, 4), where=MASK, axis=1),
        case(name, b1(3, 4), axis=3),
        case(name, [True]),
    ]


def means(name):
    return [
        case(name, f32(3, 4)),
        case(name, f32(2, 3, 4), axis=(0, 2), transforms=True),
        case(name, f32(2, 3, 4), axis=-1, keepdims=True),
        case(name, i32(3, 4), axis=0),
        case(name, b1(3, 4)),
        case(name, u8(5)),
        case(name, c64(3, 4)),
        case(name, bf16(3, 4), axis=1),
        case(name, f16(3, 4)),
        case(name, f32(0, 3), axis=0),
        case(name, 3.0),
        case(name, f32()),
        case(name, f32(3, 4), where=MASK, axis=1),
        case(name, f32(3, 4), where=MASK, keepdims=True),
        case(name, f32(3, 4), dtype=np.float16),
        case(name, i32(3, 4), dtype=np.float32, axis=1),
        case(name, f32(3, 4), axis=2),
        case(name, f32(3, 4), axis=(1, 1)),
        case(name, f32(3, 4), where=f32(3, 4)),
        case(name, i32(4), x64=True),
    ]


def variances(name):
    return [
        *means(name),
        case(name, f32(3, 4), ddof=1, axis=0),
        case(name, f32(1, 4), ddof=1, axis=0),
        case(name, f32(3, 4), ddof=2, axis=1, keepdims=True),
        case(name, f32(3, 4), axis=1, mean=f32(3, 1)),
        case(name, c64(3, 4), dtype=np.float32),
        case(name, c64(3, 4), dtype=np.complex64),
        case(name, i32(3, 4), dtype=np.int32),
        case(name, f32(3, 4), ddof=0.5),
    ]


def running(name):
    return [
        case(name, f32(3, 4)),
        case(name, f32(3, 4), axis=0, transforms=True),
        case(name, f32(2, 3, 4), axis=-2),
        case(name, i8(4)),
        case(name, b1(5)),
        case(name, c64(4)),
        case(name, bf16(6)),
        case(name, f32(0)),
        case(name, 2.0),
        case(name, 2.0, axis=0),
        case(name, f32(), axis=0),
        case(name, f32(4), dtype=np.int32),
        case(name, i32(4), dtype=np.float32),
        case(name, i32(4), dtype=np.bool_),
        case(name, f32(3), axis=1),
        case(name, f32(3), axis=(0,)),
        case(name, f32(3), out=0),
        case(name, [1, 2]),
    ]


def array_api_running(name):
    return [
        case(name, f32(4)),
        case(name, f32(3, 4), axis=1, include_initial=True, transforms=True),
        case(name, i8(4)),
        case(name, b1(4), include_initial=True),
        case(name, i32(4), dtype=np.float32),
        case(name, f32(3, 4)),
        case(name, 2.0),
        case(name, f32(3), axis=1),
    ]


CASES = [
    *sums("numpy.sum"), *promotes("numpy.sum"),
    *sums("numpy.prod"), *promotes("numpy.prod"),
    case("numpy.prod", np.array([2.0, 0.0, 3.0], np.float32), grad=True),
    *extrema("numpy.max"), *extrema("numpy.min"),
    case("numpy.amax", f32(3, 4)), case("numpy.amax", TIES, axis=1, keepdims=True), case("numpy.amax", i32(3), where=b1(3), initial=0),
    case("numpy.amin", f32(3, 4)), case("numpy.amin", TIES, axis=1, keepdims=True), case("numpy.amin", f32(0)),
    *truths("numpy.any"), *truths("numpy.all"),
    *means("numpy.mean"), *variances("numpy.var"), *variances("numpy.std"),
    case("numpy.var", f32(3, 4), correction=1.5), case("numpy.var", f32(3, 4), correction=1, ddof=1),
    case("numpy.std", f32(3, 4), correction=1, axis=0), case("numpy.std", np.array([2.0, 2.0], np.float32), grad=True),
    case("numpy.ptp", f32(3, 4)), case("numpy.ptp", TIES, axis=0, keepdims=True, transforms=True), case("numpy.ptp", i32(5)),
    case("numpy.ptp", b1(3)), case("numpy.ptp", f32(0)), case("numpy.ptp", f32(3), out=1), case("numpy.ptp", u8(3, 2), axis=(0, 1)),
    case("numpy.count_nonzero", f32(3, 4)), case("numpy.count_nonzero", i32(3, 4), axis=0, keepdims=True),
    case("numpy.count_nonzero", b1(3, 4), axis=(0, 1)), case("numpy.count_nonzero", c64(3)), case("numpy.count_nonzero", HARD32),
    case("numpy.count_nonzero", 1), case("numpy.count_nonzero", f32(3, 4), axis=[0]), case("numpy.count_nonzero", i32(3), x64=True),
    case("numpy.average", f32(3, 4)), case("numpy.average", f32(3, 4), axis=0, weights=f32(3, low=0.5), transforms=True),
    case("numpy.average", f32(3, 4), weights=f32(3, 4, low=0.5), axis=1, keepdims=True),
    case("numpy.average", f32(2, 3, 4), axis=(2, 0), weights=f32(4, 2, low=0.5)),
    case("numpy.average", i32(3, 4), returned=True), case("numpy.average", f32(3, 4), axis=1, returned=True),
    case("numpy.average", f32(3, 4), axis=1, weights=f32(4, low=0.5), returned=True, keepdims=True),
    case("numpy.average", i32(3), weights=i32(3, low=1)), case("numpy.average", f32(3, 4), weights=f32(4)),
    case("numpy.average", f32(3, 4), axis=0, weights=f32(4)), case("numpy.average", f32(3, 4), axis=5), case("numpy.average", bf16(4)),
    *sums("numpy.nansum")[:22:2], *sums("numpy.nansum")[24:29], case("numpy.nansum", NAN, axis=1, transforms=True), case("numpy.nansum", NAN, dtype=np.float16),
    case("numpy.nansum", f32(3, 4), axis=[0]),
    *sums("numpy.nanprod")[:14:2], case("numpy.nanprod", SOME_NAN, axis=0, transforms=True), case("numpy.nanprod", NAN, axis=0),
    *extrema("numpy.nanmax")[::2], case("numpy.nanmax", NAN, axis=1, transforms=True), case("numpy.nanmax", NAN, axis=1, initial=0.5, keepdims=True),
    *extrema("numpy.nanmin")[1::2], case("numpy.nanmin", NAN, axis=1, transforms=True), case("numpy.nanmin", NAN, where=MASK, initial=9.0),
    *means("numpy.nanmean")[::2], case("numpy.nanmean", SOME_NAN, axis=0, transforms=True), case("numpy.nanmean", NAN, axis=1, keepdims=True),
    *variances("numpy.nanvar")[::2], case("numpy.nanvar", SOME_NAN, axis=0, transforms=True), case("numpy.nanvar", NAN, axis=1, ddof=1),
    *variances("numpy.nanstd")[1:24:3], case("numpy.nanstd", SOME_NAN, axis=0, transforms=True), case("numpy.nanstd", NAN, axis=1, keepdims=True),
    *running("numpy.cumsum"), *running("numpy.cumprod"),
    *running("numpy.nancumsum")[::2], case("numpy.nancumsum", NAN, axis=1, transforms=True),
    *running("numpy.nancumprod")[1::3], case("numpy.nancumprod", SOME_NAN, axis=1, transforms=True),
    *array_api_running("numpy.cumulative_sum"), *array_api_running("numpy.cumulative_prod"),
]
