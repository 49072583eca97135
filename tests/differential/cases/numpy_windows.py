"""Calls of jax.numpy's window functions."""
from makers import *

CASES = [
    case(f"numpy.{name}", *args, x64=x64)
    for name in ("bartlett", "blackman", "hamming", "hanning")
    for args, x64 in (((7,), False), ((0,), False), ((1,), False), ((2,), False), ((6.7,), False), ((-1,), False), ((5,), True), ((None,), False))
] + [
    case("numpy.kaiser", 7, 2.5),
    case("numpy.kaiser", 7, array(2.5), transforms=True),
    case("numpy.kaiser", 1, 2.5),
    case("numpy.kaiser", 0, 2.5),
    case("numpy.kaiser", 5, 3),
    case("numpy.kaiser", 5, array([1.0, 2.0, 3.0, 4.0, 5.0])),
    case("numpy.kaiser", 6, 14.0, x64=True),
    case("numpy.kaiser", 5, [1]),
]
