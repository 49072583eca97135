"""What kernels are written with besides refs: slices, masked loads and stores, conditions."""
import math

from capibara._types import Slice
from capibara.jax import lax
from capibara.jax import numpy as jnp
from capibara.jax.debug import print as _print


def cdiv(a, b):
    """Division rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return (a + b - 1) // b
    return lax.div(a + (b - 1), b)


def next_power_of_2(x):
    """The least power of two that is not less."""
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape):
    """Strides in row-major order, counted in elements."""
    return tuple(math.prod(shape[axis + 1:]) for axis in range(len(shape)))


def dslice(start, size=None, stride=None):
    """A window of a ref: `size` elements from `start` on; with one argument, the first ones."""
    if start is None:
        return slice(None)
    if size is None:
        if not isinstance(start, int):
            raise TypeError("Non-static `dslice`: with one argument the size must be a known number")
        return Slice(0, start)
    return Slice(start, size, 1 if stride is None else stride)


ds = dslice


def _index(ref, idx):
    """Slices with traced starts as arrays of coordinates, which refs are read and written by."""
    idx = idx if isinstance(idx, tuple) else (idx,)
    if not any(isinstance(part, Slice) for part in idx):
        return idx
    if any(part is Ellipsis for part in idx):
        at = idx.index(Ellipsis)
        idx = idx[:at] + (slice(None),) * (len(ref.shape) - len(idx) + 1) + idx[at + 1:]
    idx = idx + (slice(None),) * (len(ref.shape) - len(idx))
    plain = []
    for size, part in zip(ref.shape, idx):
        if isinstance(part, Slice):
            part = part.start + jnp.arange(part.size) * part.stride
        elif isinstance(part, slice):
            part = jnp.arange(*part.indices(size))
        plain.append(part)
    ranks = [jnp.ndim(part) for part in plain]
    if any(rank > 1 for rank in ranks):
        raise NotImplementedError("a window together with an index array of several dimensions")
    total, seen, grids = sum(ranks), 0, []
    for part, rank in zip(plain, ranks):
        grids.append(jnp.reshape(part, (1,) * seen + (-1,) + (1,) * (total - seen - 1)) if rank else part)
        seen += rank
    return tuple(grids)


def load(ref, idx=..., *, mask=None, other=None, **_):
    """A part of a ref; where the mask is false, `other`."""
    value = ref[_index(ref, idx)]
    return value if mask is None else jnp.where(mask, value, 0 if other is None else other)


def store(ref, idx, val, *, mask=None, **_):
    """Writes a part of a ref, where the mask is true."""
    swap(ref, idx, val, mask=mask)


def swap(ref, idx, val, *, mask=None, **_):
    """Writes a part of a ref and returns what it was."""
    place = _index(ref, idx)
    old = ref[place]
    ref[place] = jnp.broadcast_to(val, old.shape).astype(old.dtype) if mask is None else jnp.where(mask, val, old)
    return old


def when(condition):
    """Runs the function that it decorates where the condition holds."""
    def run(function):
        if isinstance(condition, bool):
            if condition:
                function()
            return
        lax.cond(condition, lambda: function() and None, lambda: None)
    return run


def loop(lower, upper, *, step=1, unroll=1):
    """Runs the function that it decorates for every number from lower on, below upper."""
    def run(body):
        lax.fori_loop(0, cdiv(upper - lower, step), lambda i, carry: body(lower + i * step) and carry, None)
    return run


def multiple_of(x, values):
    """The value itself; what it is a multiple of is a hint to compilers."""
    return x


def debug_print(fmt, *args):
    """Prints values while a kernel runs."""
    _print(fmt, *args)


def debug_check(condition, message):
    """A check that only debug builds of kernels make: nothing here."""
