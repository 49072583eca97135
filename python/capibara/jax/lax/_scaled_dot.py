"""lax.scaled_dot: a dot product of operands with block scales along their contracted dimensions."""
import numpy as np

from capibara import _core

__all__ = ["scaled_dot"]


def scaled_dot(lhs, rhs, *, lhs_scale=None, rhs_scale=None, dimension_numbers=None, preferred_element_type=None):
    """(lhs * lhs_scale) @ (rhs * rhs_scale) with the dimensions of dot_general; each entry of a scale is for a block of elements."""
    import ml_dtypes
    lhs, rhs = _core.as_array(lhs), _core.as_array(rhs)
    if dimension_numbers is None:
        if lhs.ndim < 2:
            raise TypeError("scaled_dot does not support 0-rank and 1-rank operands.")
        batch = tuple(range(lhs.ndim - 2))
        dimension_numbers = (((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch))
    contracted = dimension_numbers[0]
    half = np.dtype(ml_dtypes.bfloat16)
    scaled = [_scaled(name, x.astype(half), scale, dims, half)
              for name, x, scale, dims in (("LHS", lhs, lhs_scale, contracted[0]), ("RHS", rhs, rhs_scale, contracted[1]))]
    kind = half if preferred_element_type is None else preferred_element_type
    return _core.library_function("lax", "dot_general")(*scaled, dimension_numbers, preferred_element_type=kind)


def _scaled(side, x, scale, contracted, kind):
    if scale is None:
        return x
    scale = _core.as_array(scale)
    if scale.ndim != x.ndim:
        raise TypeError(f"All input tensors must have the same rank. Got {side.lower()} rank: {x.ndim} and {side.lower()}_scale rank: "
                        f"{scale.ndim}.")
    for dim, (size, own) in enumerate(zip(x.shape, scale.shape)):
        if dim in contracted:
            if own == 0 or size % own:
                raise TypeError(f"{side} contracting dim {dim} of size {size} must be divisible by its scale's dim size {own}.")
            if size // own < 2:
                raise TypeError(f"The ratio of {side} contracting dim {dim} to its scale's dim size ({size // own}) must be at least 2.")
        elif size != own:
            raise TypeError(f"{side} dim {dim} of size {size} does not match scale dim size {own}.")
    scale = scale.astype(kind)
    for dim in contracted:
        scale = _core.library_function("numpy", "repeat")(scale, x.shape[dim] // scale.shape[dim], axis=dim)
    return x * scale
