"""Calls of every form that the runner supports; jax agrees with itself on all of them."""

from makers import *

CASES = [
    case("numpy.sum", f32(3, 4)),
    case("numpy.sum", i32(3, 4), axis=0, keepdims=True),
    case("numpy.sum", f32(3, 4), axis=5),
    case("numpy.sum", f64(3), x64=True),
    case("numpy.sin", HARD32),
    case("numpy.add", f32(3), 1),
    case("numpy.concatenate", [f32(2), f32(3)]),
    case("numpy.apply_along_axis", lib(lambda jax: jax.numpy.sort), 0, f32(3, 4)),
    case("numpy.nonzero", f32(3)),
    case("numpy.linalg.qr", f32(3, 3), tolerance=1e-4),
    case("numpy.split", f32(4), 2),
    case("numpy.result_type", "float32", 3),
    case("numpy.ndim", f32(3, 4)),
    case("scipy.special.gammaln", POSITIVE32),
    case("random.normal", key(3), (2, 3)),
    case("random.split", key(3)),
    case("nn.softmax", bf16(3, 4)),
    case("Array.T", f32(3, 2)),
    case("Array.sum", f32(3, 2), axis=-1),
    case("tree_util.tree_flatten", {"b": f32(2), "a": (1, None)}),
    check("at set drop", lambda jax: jax.numpy.arange(3).at[7].set(1)),
    check("division by a string", lambda jax: jax.numpy.arange(3) / "x"),
]
