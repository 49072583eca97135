"""The row type of benchmarks/gpu/kernels.py, and functions to make its programs."""

from dataclasses import dataclass
from typing import Callable


@dataclass
class Row:
    """`make(jax)` returns a function and its arguments for the library passed in, `torch(torch)` a call.

    Limits are the minimum bytes moved, or the operations of matmuls. All `floors` must be reached: each is a pair (what, value) of
    kernel_table.py, or a tuple of pairs of which one is enough.
    """
    name: str
    make: Callable
    subject: str
    bytes: float = 0
    operations: float = 0
    floors: tuple = ()
    units: int = 1  # how many operations one call runs
    compared: bool = True  # results must match jax's
    carried: bool = False  # the first argument is donated, and the result becomes the next one
    by_jax: bool = True  # jax has a form of it that fits the device
    cudnn: Callable | None = None  # like make: what jax runs with cuDNN, if that differs from its default
    torch: Callable | None = None
    aligned: Callable = lambda leaf: leaf  # transposes our results into jax's layout


def is_ours(jax):
    return jax.__name__.startswith("capibara")


def kernels():
    from capibara import kernels
    return kernels


def normal(jax, seed, *shape, dtype="bfloat16", scale=1.0):
    return jax.jit(lambda: (scale * jax.random.normal(jax.random.key(seed), shape)).astype(dtype))()


def with_gradient(jax, function, count):
    """The result and the gradients with respect to the first `count` arguments; the cotangent is the last argument."""
    def both(*arguments):
        rest = arguments[count:-1]
        y, pull = jax.vjp(lambda *own: function(*own, *rest), *arguments[:count])
        return y, *pull(arguments[-1])
    return both
