"""jax._src.lax.parallel: the collectives of jax.lax, and argmin and argmax over a named axis."""
from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import lax, numpy
from capibara.jax.lax import (  # noqa: F401
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    precv,
    psend,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
    ragged_all_to_all,
)


def pargmin(x: _core.Array, axis_name: str) -> _core.Array:
    """For each element, the first index along a named axis with the minimum."""
    return _first_with("pargmin", x, pmin, axis_name)


def pargmax(x: _core.Array, axis_name: str) -> _core.Array:
    """For each element, the first index along a named axis with the maximum."""
    return _first_with("pargmax", x, pmax, axis_name)


def _first_with(operation, x, extreme, axis_name):
    if isinstance(axis_name, (tuple, list)):
        raise TypeError(f"{operation} only accepts a single axis, got {axis_name}")
    x = _core.as_array(x)
    index = axis_index(axis_name)
    beyond = lax.full_like(index, numpy.iinfo(index.dtype).max)
    return pmin(numpy.where(x == extreme(x, axis_name), index, beyond), axis_name)


explain_missing(__name__)
