"""Calls of jax.scipy.fft."""

from makers import *


def one(name, *args, **options):
    return case(f"scipy.fft.{name}", *args, tolerance=1e-5, **options)


CASES = [
    *[one(name, f32(2, 5), transforms=True) for name in ("dct", "idct", "dctn", "idctn")],
    *[one(name, f32(2, 3, 4), norm="ortho") for name in ("dct", "idct", "dctn", "idctn")],
    *[one(name, f32(2, 6), norm="backward") for name in ("dct", "idct", "dctn", "idctn")],
    *[one(name, c64(2, 6)) for name in ("dct", "idct", "dctn", "idctn")],
    *[one(name, i32(2, 6)) for name in ("dct", "idct", "dctn", "idctn")],
    *[one(name, f32(2, 6), norm="forward") for name in ("dct", "idct", "dctn", "idctn")],
    *[one(name, f32(2, 6), 1) for name in ("dct", "idct", "dctn", "idctn")],
    one("dct", f32(4, 5), axis=0),
    one("dct", f32(4, 5), n=7),
    one("dct", f32(4, 5), n=3, axis=0),
    one("idct", f32(4, 5), n=7),
    one("idct", f32(4, 5), n=3, axis=0),
    one("dct", f32(4, 5), axis=2),
    one("dct", bf16(4)),
    one("dctn", f32(2, 3, 4), axes=(0, 2)),
    one("dctn", f32(2, 3, 4), s=(4, 2)),
    one("dctn", f32(2, 3, 4), s=(4,)),
    one("dctn", f32(2, 3), s=(4, 2, 3)),
    one("dctn", f32(2, 3, 2, 3)),
    one("idctn", f32(2, 3, 4), axes=(0, 2)),
    one("idctn", f32(2, 3, 4), s=(4, 2)),
    one("dct", f64(5), x64=True),
]
