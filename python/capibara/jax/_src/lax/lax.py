"""jax._src.lax.lax: small functions of jax.lax under jax's private names."""
import numpy as np

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import lax


def remaining(original, *removed):
    """The elements of a sequence that are in none of the others."""
    return [one for one in original if not any(one in some for some in removed)]


def asarray(x):
    """A value as an array, weakly typed for a Python number."""
    return _core.as_array(x)


def _const(example, val):
    """A number in the dtype of a value: a Python number if that value is weakly typed."""
    for kind in (bool, int, float, complex):
        if type(example) is kind:
            return kind(val)
    return np.array(val, _core.as_array(example).dtype)


def _delta(dtype, shape, axes):  # jax's name
    """Ones where the indices along the axes are equal, zeros elsewhere."""
    axes = [int(axis) for axis in axes]
    places = [lax.broadcasted_iota(np.uint32, [shape[axis] for axis in axes], i) for i in range(len(axes))]
    equal = places[0] == places[1]
    for one, other in zip(places[1:], places[2:]):
        equal = equal & (one == other)
    return lax.broadcast_in_dim(equal.astype(dtype), shape, axes)


__all__ = ["_const", "_delta", "asarray", "remaining"]
explain_missing(__name__)
