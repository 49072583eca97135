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


explain_missing(__name__)
