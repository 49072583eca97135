"""jax._src.lax.windowed_reductions: the derivatives of windowed maxima and minima as functions."""
from capibara._types import AttributeTuple
from capibara._modules import explain_missing
from capibara.jax import lax


def _select_and_gather_add(tangents, operand, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """For each window of `operand`, the tangent at its largest (ge_p) or smallest (le_p) element."""
    return lax.select_and_gather_add_p.bind(
        tangents, operand, select_prim=select_prim.name, window_dimensions=tuple(window_dimensions), window_strides=tuple(window_strides),
        padding=AttributeTuple(map(tuple, padding)), base_dilation=tuple(base_dilation), window_dilation=tuple(window_dilation))


def _select_and_scatter_add(source, operand, select_prim, window_dimensions, window_strides, padding):
    """Adds each element of `source` where the largest (ge_p) or smallest (le_p) element of its window of `operand` is."""
    return lax.select_and_scatter_add_p.bind(
        source, operand, select_prim=select_prim.name, window_dimensions=tuple(window_dimensions), window_strides=tuple(window_strides),
        padding=AttributeTuple(map(tuple, padding)))


__all__ = ["_select_and_gather_add", "_select_and_scatter_add"]
explain_missing(__name__)
