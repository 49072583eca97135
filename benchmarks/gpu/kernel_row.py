"""What a row of benchmarks/gpu/kernels.py is, and what its programs are made of."""

from dataclasses import dataclass
from typing import Callable


@dataclass
class Row:
    """`make(jax)` returns a function and its arguments for the library it is given, `torch(torch)` a call.

    Limits are the bytes moved at least, or the operations of matmuls. `floors` must be reached, all of them: a pair (what, value) of
    kernel_table.py, or a tuple of pairs of which one is enough.
    """
    name: str
    make: Callable
    subject: str
    bytes: float = 0
    operations: float = 0
    floors: tuple = ()
    units: int = 1  # how many of them one call runs
    compared: bool = True  # whether results must be those of jax
    carried: bool = False  # the result takes the place of the first argument, whose memory it gets
    by_jax: bool = True  # whether jax has a form of it that fits the device
    cudnn: Callable | None = None  # as make: what jax runs by cuDNN, where that differs from its default
    torch: Callable | None = None
    aligned: Callable = lambda leaf: leaf  # brings our results into the order of jax's


def is_ours(jax):
    return jax.__name__.startswith("capibara")


def kernels():
    from capibara import kernels
    return kernels


def normal(jax, seed, *shape, dtype="bfloat16", scale=1.0):
    return jax.jit(lambda: (scale * jax.random.normal(jax.random.key(seed), shape)).astype(dtype))()


def with_gradient(jax, function, count):
    """The result and the derivatives by the first `count` arguments; the cotangent is the last."""
    def both(*arguments):
        rest = arguments[count:-1]
        y, pull = jax.vjp(lambda *own: function(*own, *rest), *arguments[:count])
        return y, *pull(arguments[-1])
    return both
