"""jax._src.lax.windowed_reductions: the derivatives of windowed maxima and minima as functions."""
import numpy as np

from capibara._types import AttributeTuple
from capibara._modules import explain_missing
from capibara.jax import dtypes, lax


def _select_and_gather_add(tangents, operand, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """For each window of `operand`, the tangent at its largest (ge_p) or smallest (le_p) element."""
    if not dtypes.issubdtype(operand.dtype, np.inexact):
        return _gather_integers(tangents, operand, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return lax.select_and_gather_add_p.bind(
        tangents, operand, select_prim=select_prim.name, window_dimensions=tuple(window_dimensions), window_strides=tuple(window_strides),
        padding=AttributeTuple(map(tuple, padding)), base_dilation=tuple(base_dilation), window_dilation=tuple(window_dilation))


def _gather_integers(tangents, operand, select_prim, *window):
    least, largest = (False, True) if operand.dtype == bool else (dtypes.iinfo(operand.dtype).min, dtypes.iinfo(operand.dtype).max)
    ends = np.array(0, tangents.dtype), np.array(least if select_prim.name == "ge" else largest, operand.dtype)

    def chosen(left, right):
        first = select_prim.bind(left[1], right[1])
        return tuple(lax.select(first, one, other) for one, other in zip(left, right))
    return lax.reduce_window((tangents, operand), ends, chosen, *window)[0]


def _select_and_scatter_add(source, operand, select_prim, window_dimensions, window_strides, padding):
    """Adds each element of `source` where the largest (ge_p) or smallest (le_p) element of its window of `operand` is."""
    return lax.select_and_scatter_add_p.bind(
        source, operand, select_prim=select_prim.name, window_dimensions=tuple(window_dimensions), window_strides=tuple(window_strides),
        padding=AttributeTuple(map(tuple, padding)))


__all__ = ["_select_and_gather_add", "_select_and_scatter_add"]
explain_missing(__name__)
