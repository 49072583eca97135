"""Vector operations on pytrees: sums, multiples, inner products."""
import functools
import operator

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax import lax

_map = jax.tree.map


def to_array(value):
    """A number or array as an array; Python numbers stay weakly typed."""
    return jax.device_put(value)


def identity(x):
    return x


def add(a, b):
    return _map(operator.add, a, b)


def subtract(a, b):
    return _map(operator.sub, a, b)


def cast(value, like):
    """A value in the dtype of another array; not cast if it has that dtype, since a cast would make a weak type strong."""
    return value if value.dtype == like.dtype else value.astype(like.dtype)


def scale(factor, a):
    return _map(lambda v: cast(factor, v) * v, a)


def _total(a, b, product):
    return functools.reduce(operator.add, map(product, jax.tree.leaves(a), jax.tree.leaves(b)))


def vdot(a, b):
    """The inner product, with the first vector conjugated."""
    return _total(a, b, functools.partial(jnp.vdot, precision=lax.Precision.HIGHEST))


def _real_vdot(a, b):
    parts = [(a.real, b.real)] + ([(a.imag, b.imag)] if jnp.iscomplexobj(a) or jnp.iscomplexobj(b) else [])
    return functools.reduce(operator.add, [jnp.vdot(p, q, precision=lax.Precision.HIGHEST) for p, q in parts])


def dot_real(a, b):
    """The real part of the inner product."""
    return _total(a, b, _real_vdot)


def norm_squared(a):
    return dot_real(a, a)


def norm(a):
    return jnp.sqrt(norm_squared(a))
