"""jax.scipy.interpolate: values between the points of a grid."""
import itertools

import numpy as np

import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import tree_util

_METHODS = ("linear", "nearest")


def _known(method):
    if method not in _METHODS:
        raise ValueError(f"method {method!r} is not defined; there are {', '.join(map(repr, _METHODS))}")
    return method


def _coordinates(xi, dimensions):
    """The evaluation points as one array [..., dimensions], from an array or from one array per dimension."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi, = xi
    if isinstance(xi, tuple):
        return jnp.stack(jnp.broadcast_arrays(*xi), axis=-1).astype(float)
    xi = jnp.asarray(xi)
    return xi.reshape(-1, dimensions) if xi.ndim == 1 else xi


class RegularGridInterpolator:
    """Interpolates between values on a rectangular grid, whose axes must increase; `interpolator(points)` returns the values there.

    Points outside the grid get `fill_value`; if that is None, the outermost cells are extrapolated.
    """

    def __init__(self, points, values, method="linear", bounds_error=False, fill_value=np.nan):
        self.method = _known(method)
        self.bounds_error = bounds_error
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT: whether points are outside is not known while tracing")
        if len(points) > values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has {values.ndim} dimensions")
        values = jnp.asarray(values)
        self.values = values.astype(jnp.promote_types(values.dtype, float)) if jnp.issubdtype(values.dtype, jnp.integer) else values
        self.fill_value = None if fill_value is None else jnp.asarray(fill_value)
        if fill_value is not None and not np.can_cast(self.fill_value.dtype, self.values.dtype, "same_kind"):
            raise ValueError("fill_value must be either 'None' or of a type compatible with values")
        self.grid = tuple(jnp.asarray(axis) for axis in points)

    def __call__(self, xi, method=None):
        method = self.method if method is None else _known(method)
        dimensions = len(self.grid)
        points = _coordinates(xi, dimensions)
        if points.shape[-1] != dimensions:
            raise ValueError(f"the requested sample points xi have dimension {points.shape[-1]}, "
                             f"but this RegularGridInterpolator has dimension {dimensions}")
        flat = points.reshape(-1, dimensions)
        cells, fractions, outside = [], [], jnp.zeros(flat.shape[:1], bool)
        for x, axis in zip(flat.T, self.grid):
            cell = jnp.clip(jnp.searchsorted(axis, x) - 1, 0, axis.size - 2)  # points beyond the ends belong to the last cells
            cells.append(cell)
            fractions.append((x - axis[cell]) / (axis[cell + 1] - axis[cell]))
            outside |= (x < axis[0]) | (x > axis[-1])
        result = (self._linear if method == "linear" else self._nearest)(cells, fractions)
        if self.fill_value is not None:
            result = jnp.where(outside.reshape(-1, *[1] * (result.ndim - 1)), self.fill_value, result)
        return result.reshape(*points.shape[:-1], *self.values.shape[dimensions:])

    def _linear(self, cells, fractions):
        trailing = (slice(None), *[None] * (self.values.ndim - len(cells)))
        total = 0.
        for corner in itertools.product((0, 1), repeat=len(cells)):
            weight = 1.
            for upper, fraction in zip(corner, fractions):
                weight = weight * (fraction if upper else 1 - fraction)
            total = total + self.values[tuple(cell + upper for cell, upper in zip(cells, corner))] * weight[trailing]
        return total

    def _nearest(self, cells, fractions):
        return self.values[tuple(jnp.where(fraction <= 0.5, cell, cell + 1) for cell, fraction in zip(cells, fractions))]


def _rebuild(aux, children):
    made = object.__new__(RegularGridInterpolator)
    made.grid, made.values, made.fill_value = children
    made.method, made.bounds_error = aux
    return made


tree_util.register_pytree_node(
    RegularGridInterpolator, lambda it: ((it.grid, it.values, it.fill_value), (it.method, it.bounds_error)), _rebuild)

explain_missing(__name__)
