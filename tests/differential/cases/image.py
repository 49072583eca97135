"""Calls of jax.image."""

from makers import *

METHODS = ["nearest", "linear", "bilinear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch"]


def method(name):
    return lib(lambda jax: getattr(jax.image.ResizeMethod, name))


CASES = [
    *[case("image.resize", f32(4, 5, 2), (7, 3, 2), name, tolerance=1e-5, transforms=True) for name in METHODS],
    *[case("image.resize", f32(4, 5), (3, 8), name, antialias=False, tolerance=1e-5) for name in METHODS],
    case("image.resize", f32(4, 5), (4, 5), "linear"),
    case("image.resize", i32(4, 5), (3, 7), "linear", tolerance=1e-5),
    case("image.resize", i32(4, 5), (3, 7), "nearest"),
    case("image.resize", u8(4, 5), (8, 10), "nearest"),
    case("image.resize", bf16(4, 5), (3, 7), "linear"),
    case("image.resize", f32(4, 5), (0, 7), "linear"),
    case("image.resize", f32(4, 5), (3,), "linear"),
    case("image.resize", f32(4, 5), (3, 7), "quadratic"),
    case("image.resize", f32(4, 5), (3, 7), method("CUBIC"), tolerance=1e-5),
    case("image.resize", f32(4, 5), (3, 7), method("NEAREST"), tolerance=1e-5),
    case("image.resize", f64(4, 5), (3, 7), "linear", x64=True),
    case("image.resize", f32(4, 5), [3, 7], method="trilinear", tolerance=1e-5),
    *[case("image.scale_and_translate", f32(4, 5), (6, 7), (0, 1), array([1.5, 0.7]), array([0.2, -1.3]), name, tolerance=1e-4, transforms=True)
      for name in METHODS if name != "nearest"],
    case("image.scale_and_translate", f32(2, 4, 5), (2, 3, 3), (1, 2), array([0.5, 0.5]), array([0.0, 1.0]), "linear", False, tolerance=1e-4),
    case("image.scale_and_translate", f32(2, 4, 5), (2, 3, 3), (-1, -2), array([0.5, 0.5]), array([0.0, 1.0]), "cubic-pytorch", False, tolerance=1e-4),
    case("image.scale_and_translate", i32(4, 5), (4, 5), (1,), array([1]), array([2]), "linear", tolerance=1e-4),
    case("image.scale_and_translate", f32(4, 5), (4, 5), (), zeros((0,)), zeros((0,)), "linear"),
    case("image.scale_and_translate", f32(4, 5), (6, 7), (0, 1), array([1.5, 0.7]), array([0.2, -1.3]), "nearest"),
    case("image.scale_and_translate", f32(4, 5), (6,), (0, 1), array([1.5, 0.7]), array([0.2, -1.3]), "linear"),
]
