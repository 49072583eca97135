"""dtypes: promotion, kinds, and the extended dtypes."""
import ml_dtypes
import numpy as np

from capibara import _core
from capibara._dtypes import KeyType, extended, float0, prng_key  # noqa: F401
from capibara._errors import TypePromotionError  # noqa: F401
from capibara._modules import explain_missing
from capibara._types import ShapeDtypeStruct

bfloat16 = ml_dtypes.bfloat16
finfo = ml_dtypes.finfo
_ABSTRACT = (ShapeDtypeStruct, _core.ShapedArray)


class iinfo(ml_dtypes.iinfo):
    """The limits of an integer dtype."""


def canonicalize_dtype(dtype, allow_extended_dtype=False):
    """A dtype, narrowed according to the configuration; key types are accepted only with allow_extended_dtype."""
    if not allow_extended_dtype and dtype is not None and (isinstance(dtype, KeyType) or not isinstance(_core.dtype_of(dtype), np.dtype)):
        raise ValueError(f"canonicalize_dtype: expected a dtype of numbers, got {dtype}")
    return dtype if isinstance(dtype, KeyType) else _core.canonical_dtype(np.float64 if dtype is None else dtype)


def itemsize_bits(dtype):
    """The number of bits of a dtype's values."""
    if dtype is None:
        raise ValueError("itemsize_bits: dtype cannot be None")
    dtype = _core.dtype_of(dtype)
    if dtype == np.dtype(bool):
        return 8
    if issubdtype(dtype, np.integer):
        return ml_dtypes.iinfo(dtype).bits
    if issubdtype(dtype, np.floating):
        return ml_dtypes.finfo(dtype).bits
    return dtype.itemsize * 8


_INTEGERS = {np.dtype(t): kind for kind, names in (
    (np.signedinteger, ("int1", "int2", "int4")), (np.unsignedinteger, ("uint1", "uint2", "uint4"))) for t in
    (getattr(ml_dtypes, name) for name in names if hasattr(ml_dtypes, name))}
_FLOATS = {np.dtype(getattr(ml_dtypes, name)) for name in dir(ml_dtypes) if name.startswith(("float", "bfloat"))}


def _scalar_type(dtype):
    if isinstance(dtype, KeyType) or dtype is prng_key or dtype is extended:
        return dtype.type if isinstance(dtype, KeyType) else dtype
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    return None


def issubdtype(a, b):
    """NumPy's issubdtype, extended to small floats, small integers and keys."""
    a_type, b_type = _scalar_type(a), _scalar_type(b)
    if a_type is not None and issubclass(a_type, extended) or b_type is not None and issubclass(b_type, extended):
        return a_type is not None and b_type is not None and issubclass(a_type, b_type)
    if a_type is None or not _is_abstract(a_type):
        a_dtype = _np_dtype(a)
        if a_dtype in _FLOATS and b_type is not None and _is_abstract(b_type):
            return issubclass(np.floating, b_type)
        if a_dtype in _INTEGERS and b_type is not None and _is_abstract(b_type):
            return issubclass(_INTEGERS[a_dtype], b_type)
        a = a_dtype
    if b_type is not None and _is_abstract(b_type):
        return np.issubdtype(a, b_type)
    b_dtype = _np_dtype(b)
    if a_type is not None and _is_abstract(a_type):
        return issubclass(a_type, b_dtype.type)
    return a == b_dtype


def _is_abstract(scalar):
    return scalar in (np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
                      np.complexfloating, np.flexible, np.character)


def _np_dtype(value):
    if value in (int, float, complex, bool):
        return np.dtype(value)
    try:
        return _core.dtype_of(value)
    except TypeError:
        return np.dtype(value)


_DEFAULTS = {np.signedinteger: np.int64, np.unsignedinteger: np.uint64, np.floating: np.float64, np.complexfloating: np.complex128}


def _default_dtype(dtype):
    """The default dtype of a Python number's kind, whatever dtype it is stored in."""
    return np.dtype(_DEFAULTS[next(kind for kind in _DEFAULTS if issubdtype(dtype, kind))])


def result_type(*args, return_weak_type_flag=False):
    """The result dtype of an operation on these values, dtypes or types."""
    if not args:
        raise ValueError("at least one array or dtype is required")
    dtype, weak = _core.promote_scalar_types([(a.dtype, a.weak_type) if isinstance(a, _ABSTRACT) else _core.scalar_type(np.float64 if a is None else a) for a in args])
    if weak:
        dtype = _default_dtype(dtype)
    dtype = _core.canonical_dtype(dtype)
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a, b):
    """The dtype that two dtypes promote to."""
    pairs = [(_core.dtype_of(t), isinstance(t, type) and t in (int, float, complex)) for t in (a, b)]  # np.dtype(int) == int
    dtype, weak = _core.promote_scalar_types(pairs)
    if weak:
        return _default_dtype(dtype)
    # The result has 64 bits only if an operand has.
    given_wide = any(_core.canonical_dtype(t) != t for t, is_number in pairs if not is_number)
    return dtype if given_wide else _core.canonical_dtype(dtype)


def scalar_type_of(x):
    """The Python type of the same kind as a value."""
    dtype = _core.scalar_type(x)[0]
    if dtype == np.dtype(bool):
        return bool
    for kind, python in ((np.integer, int), (np.floating, float), (np.complexfloating, complex)):
        if issubdtype(dtype, kind):
            return python
    raise TypeError(f"Invalid scalar value {x}")


explain_missing(__name__)
