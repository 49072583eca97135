"""Calls of jax.numpy's sorting and searching functions."""

from makers import *

NAN = np.array([[1.0, np.nan, -2.0, 0.5], [np.nan, np.nan, np.nan, np.nan], [3.0, 3.0, -0.0, np.inf]], np.float32)
TIES = np.array([[1.0, 2.0, 2.0], [2.0, 0.0, 2.0]], np.float32)
ZEROS = np.array([0.0, -0.0, 1.0, -1.0, -0.0, 0.0], np.float32)
SORTED = np.array([-1.5, -0.5, 0.0, 0.0, 0.25, 1.0, 3.0], np.float32)
COMPLEX = np.array([1 + 2j, 1 - 1j, -2j, 0, complex(np.nan, 1), 3], np.complex64)


def positions(name):
    return [
        case(name, f32(3, 4)),
        case(name, TIES, axis=1, jit=True, vmap=True),
        case(name, f32(2, 3, 4), axis=-2, keepdims=True),
        case(name, f32(2, 3), keepdims=True),
        case(name, i32(3, 4), axis=0),
        case(name, u8(5)),
        case(name, b1(5)),
        case(name, bf16(3, 4), axis=1),
        case(name, NAN, axis=1),
        case(name, HARD32),
        case(name, f32()),
        case(name, 2.0),
        case(name, f32(0)),
        case(name, f32(0, 3), axis=1),
        case(name, f32(0, 3), axis=0),
        case(name, f32(3), axis=1),
        case(name, c64(3)),
        case(name, f32(3), out=1),
        case(name, [1, 2]),
        case(name, i32(3), x64=True),
    ]


CASES = [
    *positions("numpy.argmax"), *positions("numpy.argmin"), *positions("numpy.nanargmax"), *positions("numpy.nanargmin"),
    case("numpy.sort", f32(3, 4)), case("numpy.sort", TIES, axis=0, transforms=True), case("numpy.sort", f32(2, 3), axis=None, descending=True),
    case("numpy.sort", i32(6)), case("numpy.sort", u8(6), descending=True), case("numpy.sort", b1(6)), case("numpy.sort", COMPLEX),
    case("numpy.sort", bf16(7)), case("numpy.sort", HARD32), case("numpy.sort", ZEROS, stable=False), case("numpy.sort", f32(0)),
    case("numpy.sort", f32()), case("numpy.sort", f32(3), axis=1), case("numpy.sort", f32(3), kind="stable"), case("numpy.sort", f32(3), order="a"),
    case("numpy.sort", [2, 1]), case("numpy.sort", 1.0, axis=None),
    case("numpy.argsort", f32(3, 4)), case("numpy.argsort", TIES, axis=0, jit=True, vmap=True), case("numpy.argsort", TIES, descending=True),
    case("numpy.argsort", i32(6), axis=None), case("numpy.argsort", HARD32), case("numpy.argsort", ZEROS), case("numpy.argsort", ZEROS, descending=True),
    case("numpy.argsort", b1(6)), case("numpy.argsort", COMPLEX), case("numpy.argsort", f32(4), dtype=np.int8), case("numpy.argsort", i32(4), x64=True),
    case("numpy.argsort", f32()), case("numpy.argsort", f32(3), kind="x"), case("numpy.argsort", f32(3), axis=4),
    case("numpy.lexsort", (i32(6, high=0), f32(6))), case("numpy.lexsort", [i32(6, low=0, high=2), i32(6, low=0, high=2)]),
    case("numpy.lexsort", i32(2, 6, low=0, high=3)), case("numpy.lexsort", (f32(2, 3), f32(2, 3)), axis=0), case("numpy.lexsort", ()),
    case("numpy.lexsort", (f32(2), f32(3))), case("numpy.lexsort", (1.0, 2.0)),
    case("numpy.sort_complex", f32(5)), case("numpy.sort_complex", COMPLEX), case("numpy.sort_complex", i32(4)), case("numpy.sort_complex", f16(4)),
    case("numpy.partition", f32(7), 3), case("numpy.partition", f32(3, 5), 1, axis=0, transforms=True), case("numpy.partition", i32(7), -2),
    case("numpy.partition", u8(7), 2), case("numpy.partition", f32(4), 3), case("numpy.partition", c64(4), 1), case("numpy.partition", f32(4), 4),
    case("numpy.partition", f32(4), 1, axis=1), case("numpy.partition", b1(4), 1),
    case("numpy.argpartition", f32(7), 3), case("numpy.argpartition", f32(3, 5), 1, axis=0, jit=True, vmap=True), case("numpy.argpartition", u8(7), 2),
    case("numpy.argpartition", i32(2, 3, 4), 1), case("numpy.argpartition", c64(4), 1), case("numpy.argpartition", f32(4), 9),
    case("numpy.searchsorted", SORTED, f32(5)), case("numpy.searchsorted", SORTED, f32(2, 3), side="right", jit=True, vmap=True),
    case("numpy.searchsorted", SORTED, SORTED), case("numpy.searchsorted", SORTED, SORTED, side="right", method="scan_unrolled"),
    case("numpy.searchsorted", SORTED, HARD32, method="compare_all"), case("numpy.searchsorted", SORTED, HARD32, side="right", method="sort"),
    case("numpy.searchsorted", SORTED, f32(2, 3), method="sort", jit=True), case("numpy.searchsorted", SORTED, HARD32),
    case("numpy.searchsorted", np.array([0, 2, 4], np.int32), 3), case("numpy.searchsorted", np.array([0, 2, 4], np.int32), f32(3)),
    case("numpy.searchsorted", f32(5), f32(3), sorter=np.array([0, 3, 1, 2, 4], np.int32)), case("numpy.searchsorted", f32(0), f32(3)),
    case("numpy.searchsorted", np.array([0, 1j, 1], np.complex64), c64(3)), case("numpy.searchsorted", SORTED, f32(3), side="middle"),
    case("numpy.searchsorted", SORTED, f32(3), method="magic"), case("numpy.searchsorted", f32(2, 2), f32(3)),
    case("numpy.searchsorted", i32(3), i32(2), x64=True), case("numpy.searchsorted", bf16_from([0, 1, 2]), bf16(4)),
    case("numpy.digitize", f32(6), SORTED), case("numpy.digitize", f32(2, 3), SORTED[::-1].copy(), right=True, jit=True, vmap=True),
    case("numpy.digitize", i32(5), np.array([0, 2, 4], np.int32), method="sort"), case("numpy.digitize", f32(3), f32(0)),
    case("numpy.digitize", f32(3), f32(2, 2)), case("numpy.digitize", 0.5, SORTED),
    case("numpy.nonzero", i32(3, 4, low=-1, high=2), size=5), case("numpy.nonzero", b1(3, 4)), case("numpy.nonzero", f32(5)), case("numpy.nonzero", b1(2, 3, 4)),
    case("numpy.nonzero", b1(3, 4), size=20), case("numpy.nonzero", b1(3, 4), size=2), case("numpy.nonzero", b1(6), size=8, fill_value=-1),
    case("numpy.nonzero", b1(3, 4), size=14, fill_value=(7, 8)), case("numpy.nonzero", b1(6), size=8, fill_value=0.5),
    case("numpy.nonzero", b1(3, 4), size=14, fill_value=(7,)), case("numpy.nonzero", b1(0, 3)), case("numpy.nonzero", zeros(3)),
    case("numpy.nonzero", zeros(3), size=2), case("numpy.nonzero", 1.0), case("numpy.nonzero", [1, 0]), case("numpy.nonzero", b1(5), x64=True),
    check("nonzero under jit", lambda jax: jax.jit(jax.numpy.nonzero)(jax.numpy.arange(3))),
    case("numpy.flatnonzero", b1(3, 4), size=6, fill_value=100), case("numpy.flatnonzero", i32(5)), case("numpy.flatnonzero", 3),
    case("numpy.argwhere", b1(3, 4), size=6, fill_value=-1), case("numpy.argwhere", i32(5)), case("numpy.argwhere", f32(2, 2, 2)),
    case("numpy.argwhere", 1), case("numpy.argwhere", 0), case("numpy.argwhere", b1(3, 4), size=14, fill_value=(7, 8)),
    case("numpy.extract", b1(3, 4), f32(3, 4), size=5), case("numpy.extract", b1(3, 4), f32(3, 4)), case("numpy.extract", i32(4), i32(4), size=3, fill_value=9),
    case("numpy.compress", b1(4), f32(3, 4), axis=1, size=3), case("numpy.compress", b1(4), f32(4)), case("numpy.compress", b1(3), f32(3, 4), axis=0),
    case("numpy.compress", b1(2), f32(3, 4)), case("numpy.compress", np.array([True] * 5), f32(4)), case("numpy.compress", b1(2, 2), f32(4)),
    case("numpy.compress", b1(4), f32(4), size=5), case("numpy.compress", b1(4), f32(4), size=4, fill_value=-1), case("numpy.compress", b1(4), f32(4), out=1),
    case("numpy.compress", b1(4), i32(2, 4), axis=-1),
    case("numpy.compress", b1(4), f32(3, 4), axis=1, grad=True), case("numpy.extract", b1(4), f32(4), grad=True),
    case("numpy.compress", b1(4), f32(2, 4), axis=1, size=2, transforms=True), case("numpy.partition", u8(3, 4), 2, jit=True, vmap=True),
    case("numpy.sort", f64(6), x64=True), case("numpy.sort", HARD16), case("numpy.argsort", HARDBF16), case("numpy.sort", HARDC64),
    case("numpy.lexsort", (NAN[0], NAN[2])), case("numpy.sort", NAN, axis=0, grad=True), case("numpy.nonzero", HARD32), case("numpy.nonzero", c64(4)),
    check("argmax of a list axis", lambda jax: jax.numpy.argmax(jax.numpy.ones((2, 3)), axis=(0,))),
    check("nonzero of a traced size", lambda jax: jax.jit(lambda n: jax.numpy.nonzero(jax.numpy.arange(3), size=n))(2)),
    check("compress under jit", lambda jax: jax.jit(jax.numpy.compress)(jax.numpy.ones(3) > 0, jax.numpy.arange(3))),
]
