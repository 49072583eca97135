"""Functions for kernels besides refs: slices, masked loads and stores, conditions, scratch memory."""
import math

from capibara._types import Slice
from capibara.jax import lax
from capibara.jax import numpy as jnp
from capibara.jax.debug import print as _print
from capibara.jax.ref import new_ref


def cdiv(a, b):
    """Division rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return (a + b - 1) // b
    return lax.div(a + (b - 1), b)


def next_power_of_2(x):
    """The smallest power of two >= x."""
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape):
    """Row-major strides in elements."""
    return tuple(math.prod(shape[axis + 1:]) for axis in range(len(shape)))


def dslice(start, size=None, stride=None):
    """A window of a ref: `size` elements from `start`; with one argument, the first `start` elements."""
    if start is None:
        return slice(None)
    if size is None:
        if not isinstance(start, int):
            raise TypeError("Non-static `dslice`: with one argument the size must be a known number")
        return Slice(0, start)
    return Slice(start, size, 1 if stride is None else stride)


ds = dslice


def load(ref, *, mask=None, other=None, **_):
    """The value of a ref or a part of one, `ref.at[...]`; `other` where the mask is false."""
    value = ref[...]
    return value if mask is None else jnp.where(mask, value, jnp.asarray(0 if other is None else other, value.dtype))


def store(ref, val, *, mask=None, **_):
    """Writes a ref or a part of one, where the mask is true."""
    old = ref[...]
    val = jnp.broadcast_to(val, old.shape).astype(old.dtype)
    ref[...] = val if mask is None else jnp.where(mask, val, old)


def when(condition):
    """A decorator that runs the function if the condition holds."""
    def run(function):
        if isinstance(condition, bool):
            if condition:
                function()
            return
        lax.cond(condition, lambda: function() and None, lambda: None)
    return run


def loop(lower, upper, *, step=1, unroll=1):
    """A decorator that runs the function for every index in [lower, upper)."""
    def run(body):
        lax.fori_loop(0, cdiv(upper - lower, step), lambda i, carry: body(lower + i * step) and carry, None)
    return run


def align_to(x, a):
    """The smallest multiple of a that is >= x."""
    return cdiv(x, a) * a


def reciprocal(x, *, approx=False):
    """1 / x."""
    return 1 / x


def broadcast_to(a, shape):
    """An array repeated to a shape."""
    return jnp.broadcast_to(a, shape)


def empty(shape, dtype, *, memory_space=None, out_sharding=None):
    """An array with undefined values."""
    return jnp.zeros(shape, dtype)


def empty_like(x):
    """An array of the same type with undefined values."""
    return jnp.zeros(x.shape, x.dtype)


def run_scoped(f, *types, collective_axes=(), **kw_types):
    """Calls a function with refs of these types, which exist while it runs."""
    def ref(kind):
        return new_ref(jnp.zeros(kind.shape, kind.dtype))
    return f(*map(ref, types), **{name: ref(kind) for name, kind in kw_types.items()})


def multiple_of(x, values):
    """Returns x; its divisors are a hint to compilers."""
    return x


def debug_print(fmt, *args):
    """Prints values while a kernel runs."""
    _print(fmt, *args)


def debug_check(condition, message):
    """A check in debug builds of kernels only: does nothing here."""
