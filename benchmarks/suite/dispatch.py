"""The overhead of a call: compiled calls of small programs, and operations called one by one."""

import numpy

from .row import Row


def small(random):
    return (random.standard_normal(4).astype(numpy.float32),)


def dictionary(random):
    return ({f"leaf {number}": random.standard_normal(4).astype(numpy.float32) for number in range(100)},)


def jit_add(jax):
    return jax.jit(lambda x: x + 1)


def jit_first(jax):
    return jax.jit(lambda leaves: leaves["leaf 0"] + leaves["leaf 99"])


def jit_all(jax):
    return jax.jit(lambda leaves: {name: value + 1 for name, value in leaves.items()})


def call(name, what, inputs, program, least, **peers):
    return Row(name, what, inputs, program, threads=1, eager=True, blocking=False, compared=False, least=least, **peers)


def add_one(library):
    return lambda x: x + 1


def add(library):
    return lambda x, y: x + y


def evaluated(function):
    """MLX is lazy: evaluates each result, since the others compute it at once."""
    def maker(mx):
        inner = function(mx)

        def run(*inputs):
            result = inner(*inputs)
            mx.eval(result)
            return result
        return run
    return maker


def rows():
    two = lambda random: (*small(random), *small(random))
    square = lambda random: (random.standard_normal((4, 4)).astype(numpy.float32),) * 2
    plus = lambda library: lambda leaves: leaves["leaf 0"] + leaves["leaf 99"]
    return [
        call("jit call", "one array of 4 f32", small, jit_add, {"most": 2e-6, "jax": 1.0, "torch": 1.0}, torch=add_one,
             mlx=evaluated(add_one), numpy=add_one),
        call("jit call of 100 leaves", "a dictionary of 100 arrays of 4 f32, one result", dictionary, jit_first,
             {"most": 12e-6, "jax": 1.0}, torch=plus),
        call("jit call of 100 to 100 leaves", "a dictionary of 100 arrays of 4 f32, all of them changed", dictionary, jit_all,
             {"jax": 1.0}),
        call("eager add", "two arrays of 4 f32", two, add, {"most": 2e-6, "jax": 1.0, "torch": 1.0}, torch=add,
             mlx=evaluated(add), numpy=add),
        call("eager sin", "one array of 4 f32", small, lambda jax: jax.numpy.sin, {"jax": 1.0}, torch=lambda torch: torch.sin,
             mlx=evaluated(lambda mx: mx.sin), numpy=lambda numpy: numpy.sin),
        call("eager matmul", "(4,4) @ (4,4) f32", square, lambda jax: lambda a, b: a @ b, {"jax": 1.0},
             torch=lambda torch: lambda a, b: a @ b, mlx=evaluated(lambda mx: lambda a, b: a @ b),
             numpy=lambda numpy: lambda a, b: a @ b),
        call("eager index", "x[2] of 4 f32", small, lambda jax: lambda x: x[2], {"jax": 1.0}, torch=lambda torch: lambda x: x[2],
             numpy=lambda numpy: lambda x: x[2]),
    ]
