"""jax._src.dtypes: names of jax.dtypes, and kinds of dtypes."""
import numpy as np

from capibara._dtypes import KeyType as ExtendedDType
from capibara._modules import explain_missing
from capibara.jax.dtypes import (  # noqa: F401
    TypePromotionError,
    bfloat16,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
    result_type,
)

DType = np.dtype | ExtendedDType


def supports_inf(dtype):
    """True if a floating dtype has infinities."""
    if not issubdtype(dtype, np.floating):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.asarray(np.inf, dtype).astype(np.float32)))


def to_complex_dtype(dtype: object) -> np.dtype:
    """The complex dtype of the same precision; complex64 for all but double precision."""
    real = np.dtype(dtype) if issubdtype(dtype, np.inexact) else result_type(float)
    return np.dtype("complex128" if real in (np.dtype("float64"), np.dtype("complex128")) else "complex64")


explain_missing(__name__)
