"""nn.scaled_matmul: a matmul of operands with block scales along their last dimension."""
import numpy as np

from capibara import _core


def scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=np.float32):
    """The matmul [B, M, N] of lhs [B, M, K] and rhs [B, N, K], each times its scales, one per block of K.

    A composition in float32, which runs and differentiates on every platform.
    """
    arrays = [_core.as_array(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    a, b, a_scales, b_scales = (x.shape for x in arrays)
    if not all(x.ndim == 3 for x in arrays):
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays")
    if a[2] != b[2] or a[0] != b[0]:
        raise ValueError("scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) dimensions, but got shapes "
                         f"{a} and {b}")
    if a_scales[2] != b_scales[2] or a_scales[0] != b_scales[0]:
        raise ValueError("scaled_matmul requires scales to have matching batch (B) and contract (K) dimensions, but got shapes "
                         f"{a_scales} and {b_scales}")
    if a_scales[1] != a[1] or b_scales[1] != b[1]:
        raise ValueError("scaled_matmul requires scales to match non-contract dimensions of inputs, but got shapes "
                         f"a: {a}, b: {b}, a_scales: {a_scales}, b_scales: {b_scales}")
    if a_scales[0] != a[0] or a_scales[2] == 0 or a[2] % a_scales[2]:
        raise ValueError(f"scaled_matmul: scales must have the batch of the inputs and a divisor of their last dimension, got shapes "
                         f"a: {a} and a_scales: {a_scales}")
    repeat = _core.library_function("numpy", "repeat")
    wide = [x.astype(np.float32) * repeat(scales.astype(np.float32), x.shape[2] // scales.shape[2], axis=2)
            for x, scales in zip(arrays, arrays[2:])]
    product = _core.library_function("lax", "dot_general")(*wide, (((2,), (2,)), ((0,), (0,))), preferred_element_type=np.float32)
    return product.astype(preferred_element_type)
