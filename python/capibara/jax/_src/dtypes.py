"""jax._src.dtypes: names of jax.dtypes, and what kinds of dtype there are."""
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
    """Whether a dtype of floats has infinities."""
    if not issubdtype(dtype, np.floating):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.asarray(np.inf, dtype).astype(np.float32)))


def to_complex_dtype(dtype: object) -> np.dtype:
    """The complex dtype of the same precision; complex64 where that is not double."""
    real = np.dtype(dtype) if issubdtype(dtype, np.inexact) else result_type(float)
    return np.dtype("complex128" if real in (np.dtype("float64"), np.dtype("complex128")) else "complex64")


explain_missing(__name__)
