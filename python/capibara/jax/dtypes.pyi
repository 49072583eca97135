"""Types of jax.dtypes: promotion, kinds, and the extended dtypes."""
from typing import Any, Literal, overload

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16 as bfloat16
from ml_dtypes import finfo as finfo

from capibara._dtypes import KeyType as KeyType
from capibara._dtypes import extended as extended
from capibara._dtypes import float0 as float0
from capibara._dtypes import prng_key as prng_key
from capibara._errors import TypePromotionError as TypePromotionError
from capibara.jax.typing import DTypeLike

class iinfo(ml_dtypes.iinfo):
    """The limits of an integer dtype."""

def canonicalize_dtype(dtype: DTypeLike | None, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """A dtype, narrowed according to the configuration; key types are accepted only with allow_extended_dtype."""
def itemsize_bits(dtype: DTypeLike) -> int:
    """The number of bits of a dtype's values."""
def issubdtype(a: DTypeLike | KeyType | None, b: DTypeLike | KeyType | None) -> bool:
    """NumPy's issubdtype, extended to small floats, small integers and keys."""
@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = False) -> np.dtype[Any]:
    """The result dtype of an operation on these values, dtypes or types."""
@overload
def result_type(*args: Any, return_weak_type_flag: Literal[True]) -> tuple[np.dtype[Any], bool]: ...
def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype[Any]:
    """The dtype that two dtypes promote to."""
def scalar_type_of(x: Any) -> type[bool] | type[int] | type[float] | type[complex]:
    """The Python type of the same kind as a value."""
