"""Calls that `perturbed` gets wrong, each differently; the comment names the modes that must fail."""

from makers import *

CASES = [
    case("numpy.sin", f32(3)),  # eager jit vmap
    case("numpy.cos", f32(3)),  # grad
    case("numpy.sum", f32(3), axis=4),  # eager
    case("numpy.sign", f32(3), vmap=False, jit=False, grad=False),  # eager
    case("numpy.add", lib(lambda jax: 2), 3),  # eager, by the weak type
    case("numpy.ravel", f32(2, 3), transforms=False),  # eager
    case("numpy.split", f32(4), 2, transforms=False),  # eager
    case("numpy.floor_divide", array([1, 7, 9]), 2, transforms=False),  # eager
    case("numpy.tanh", f32(1), vmap=False, grad=False),  # eager, by the shape, and jit
    case("numpy.cosh", f32(1)),  # does not exist, once
]
