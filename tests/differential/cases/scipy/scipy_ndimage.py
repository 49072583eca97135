"""Calls of jax.scipy.ndimage."""

from makers import *

MODES = ["constant", "nearest", "wrap", "mirror", "reflect"]


def one(*args, **options):
    return case("scipy.ndimage.map_coordinates", *args, tolerance=1e-5, **options)


CASES = [
    *[one(f32(4, 5), [f32(6, low=-6, high=8), f32(6, low=-6, high=8)], order, mode) for mode in MODES for order in (0, 1)],
    one(f32(4, 5), [f32(6, low=-1, high=5), f32(6, low=-1, high=5)], 1, transforms=True),
    one(f32(4, 5), [f32(6, low=-1, high=5), f32(6, low=-1, high=5)], 1, "constant", 2.5),
    one(i32(4, 5), [f32(6, low=-1, high=5), f32(6, low=-1, high=5)], 1, cval=7),
    one(i32(4, 5), [f32(6, low=-1, high=5), f32(6, low=-1, high=5)], 0),
    one(f32(4), [array([-0.5, 0.5, 1.5, 2.5, 3.5])], 0, "nearest"),
    one(f32(4), [i32(3, low=0, high=4)], 1),
    one(f32(4, 5), f32(2, 3, 2, low=0, high=4), 1),
    one(f32(4, 5), [1.5, f32(3, low=0, high=4)], 1),
    one(f32(4, 5), [[1.5, 2.0], [0.0, 1.0]], 1),
    one(c64(4), [f32(3, low=0, high=3)], 1),
    one(bf16(4), [f32(3, low=0, high=3)], 1),
    one(f32(1), [f32(3, low=-2, high=3)], 1, "reflect"),
    one(f32(4, 5), [f32(3)], 1),
    one(f32(4), [f32(3)], 2),
    one(f32(4), [f32(3)], 1, "grid-wrap"),
    one(f64(4), [f64(3, low=0, high=3)], 1, x64=True),
]
