"""jax.experimental.pallas.triton: functions for GPU kernels, interpreted."""
from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import numpy as jnp
from capibara.jax.experimental.pallas._blocks import CompilerParams  # noqa: F401
from capibara.jax.experimental.pallas._kernels import load, store  # noqa: F401


def _atomic(combine):
    def update(x_ref_or_view, idx, val, *, mask=None):
        old = x_ref_or_view[idx]
        new = combine(old, val)
        x_ref_or_view[idx] = new if mask is None else jnp.where(mask, new, old)
        return old
    return update


# Grid steps run sequentially, so a read followed by a write is atomic.
atomic_and, atomic_or, atomic_xor = (_atomic(combine) for combine in (jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor))
atomic_add, atomic_max, atomic_min = (_atomic(combine) for combine in (jnp.add, jnp.maximum, jnp.minimum))
atomic_xchg = _atomic(lambda _, value: value)


def approx_tanh(x: _core.Array) -> _core.Array:
    """tanh, here exact."""
    return jnp.tanh(x)


def dot(a: _core.Array, b: _core.Array, *, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None,
        precision: object = None) -> _core.Array:
    """The matmul of two blocks."""
    return jnp.dot(a.T if trans_a else a, b.T if trans_b else b, precision=precision)


def max_contiguous(x: _core.Array, values: object) -> _core.Array:
    """Returns x; contiguity is a hint to compilers."""
    return x


def debug_barrier() -> None:
    """Does nothing: steps run sequentially."""


explain_missing(__name__)
