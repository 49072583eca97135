"""Types of capibara.jax.numpy. Made by tools/python/make_stubs.py."""
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, overload
from capibara._stub_types import Prototype, Shape
from capibara._types import GatherScatterMode
from capibara.jax._mesh import PartitionSpec
from capibara.jax.lax import PrecisionLike
from ml_dtypes import finfo as finfo
from numpy import character as character
from numpy import complexfloating as complexfloating
from numpy import dtype as dtype
from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import flexible as flexible
from numpy import floating as floating
from numpy import generic as generic
from numpy import get_printoptions as get_printoptions
from numpy import index_exp as index_exp
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import integer as integer
from numpy import iterable as iterable
from numpy import nan as nan
from numpy import number as number
from numpy import object_ as object_
from numpy import pi as pi
from numpy import printoptions as printoptions
from numpy import s_ as s_
from numpy import save as save
from numpy import savez as savez
from numpy import set_printoptions as set_printoptions
from numpy import signedinteger as signedinteger
from numpy import unsignedinteger as unsignedinteger
from numpy.exceptions import ComplexWarning as ComplexWarning
from capibara.jax.dtypes import issubdtype as issubdtype
from capibara.jax.dtypes import promote_types as promote_types
from capibara.jax.numpy import fft as fft
from capibara.jax.numpy import linalg as linalg
from capibara.jax.numpy._functions import custom_op as custom_op
from capibara.jax.numpy._functions import vectorize as vectorize
from capibara.jax.numpy._ufuncs import frompyfunc as frompyfunc

import builtins
from typing import Any

import numpy as np

from capibara._core import Array
from capibara.jax._devices import Device
from capibara.jax._sharding import Sharding
from capibara.jax.dtypes import iinfo as _iinfo
from capibara.jax.numpy._ufuncs import ufunc as ufunc
from capibara.jax.typing import ArrayLike, DTypeLike

class _ScalarType(type):
    """The class of the scalar types: names of dtypes that make arrays when they are called."""

    dtype: np.dtype[Any]
    def __call__(self, x: Any = 0) -> Array: ...

class _UnaryUfunc(ufunc):
    def __call__(self, x: ArrayLike, /, *, out: None = None, where: None = None) -> Array: ...  # type: ignore[override]

class _BinaryUfunc(ufunc):
    def __call__(self, x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array: ...  # type: ignore[override]

class _Grid:
    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any: ...

class _Join:
    def __getitem__(self, key: Any) -> Array: ...

class iinfo(_iinfo): ...

ndarray = Array
mgrid: _Grid
ogrid: _Grid
r_: _Join
c_: _Join

def result_type(*args: Any) -> np.dtype[Any]: ...
def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> builtins.bool: ...
def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> builtins.bool: ...
def load(file: Any, *args: Any, **kwargs: Any) -> Array: ...
def from_dlpack(x: Any, /, *, device: Device | Sharding | None = None, copy: builtins.bool | None = None) -> Array: ...
def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: builtins.bool | None = None
) -> str: ...
def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: builtins.bool | None = None
) -> str: ...
def abs(x: ArrayLike, /) -> Array:
    """The absolute value; of complex numbers, the modulus."""
def absolute(x: ArrayLike, /) -> Array:
    """The absolute value; of complex numbers, the modulus."""
def acos(x: ArrayLike, /) -> Array:
    """The inverse cosine."""
def acosh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic cosine."""
add: _BinaryUfunc
def all(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, *, where: ArrayLike | None = None) -> Array:
    """Whether all elements along axes are true."""
def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: builtins.bool = False) -> Array:
    """Whether |a - b| <= atol + rtol |b| everywhere."""
def amax(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """Another name of max."""
def amin(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """Another name of min."""
def angle(z: ArrayLike, deg: builtins.bool = False) -> Array:
    """The angle of a complex number in the plane, in radians or degrees."""
def any(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, *, where: ArrayLike | None = None) -> Array:
    """Whether any element along axes is true."""
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with values appended at its end."""
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Any:
    """A function of vectors applied to every vector along an axis."""
def apply_over_axes(func: Callable[..., Any], a: ArrayLike, axes: Sequence[int]) -> Array:
    """A function of an array and an axis applied for one axis after the other."""
def arange(start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike | None = None, dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Numbers from start (by default 0) up to but excluding stop."""
def arccos(x: ArrayLike, /) -> Array:
    """The inverse cosine."""
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic cosine."""
def arcsin(x: ArrayLike, /) -> Array:
    """The inverse sine."""
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic sine."""
def arctan(x: ArrayLike, /) -> Array:
    """The inverse tangent."""
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in [-pi, pi]."""
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic tangent."""
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None) -> Array:
    """The first position of the greatest element."""
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None) -> Array:
    """The first position of the least element."""
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions that partition an array around its kth element."""
def argsort(a: ArrayLike, axis: int | None = -1, *, kind: str | None = None, order: str | None = None, stable: builtins.bool = True, descending: builtins.bool = False, dtype: DTypeLike | None = None) -> Array:
    """The positions that sort an array along an axis."""
def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array:
    """The positions of the elements that are not zero, one row for each."""
def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The nearest number with this many decimals; ties go to the even one."""
def array(object: Any, dtype: DTypeLike | None = None, *args: Any, copy: builtins.bool = True, order: str = 'K', ndmin: int = 0, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """A new array from numbers, arrays, or nested sequences of them."""
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: builtins.bool = False) -> Array:
    """Whether two arrays have the same shape and elements."""
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays are equal after broadcasting."""
def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Splits an array into sections whose sizes differ by at most one, or at the given positions."""
def asarray(a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, copy: builtins.bool | None = None, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array from numbers, arrays, or nested sequences of them; an array is returned as it is."""
def asin(x: ArrayLike, /) -> Array:
    """The inverse sine."""
def asinh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic sine."""
def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: builtins.bool = False, device: Device | Sharding | None = None) -> Array:
    """The elements converted to another dtype."""
def atan(x: ArrayLike, /) -> Array:
    """The inverse tangent."""
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in [-pi, pi]."""
def atanh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic tangent."""
@overload
def atleast_1d(first: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(first: ArrayLike, second: ArrayLike, /, *arys: ArrayLike) -> list[Array]:
    """Turns scalars into arrays of one element."""
@overload
def atleast_2d(first: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(first: ArrayLike, second: ArrayLike, /, *arys: ArrayLike) -> list[Array]:
    """Adds leading axes of size one up to two dimensions."""
@overload
def atleast_3d(first: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(first: ArrayLike, second: ArrayLike, /, *arys: ArrayLike) -> list[Array]:
    """Adds axes of size one up to three dimensions."""
@overload
def average(a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None, returned: Literal[False] = False, keepdims: builtins.bool = False) -> Array: ...
@overload
def average(a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None, *, returned: Literal[True], keepdims: builtins.bool = False) -> tuple[Array, Array]: ...
@overload
def average(a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None, returned: builtins.bool = False, keepdims: builtins.bool = False) -> Array | tuple[Array, Array]:
    """The weighted mean along axes; with returned=True also the sum of the weights."""
def bartlett(M: int) -> Array:
    """A triangular window."""
bfloat16: _ScalarType
def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """How often each of 0, 1, ... occurs, or the sum of its weights."""
bitwise_and: _BinaryUfunc
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of one bits in the absolute value."""
def bitwise_invert(x: ArrayLike, /) -> Array:
    """All bits inverted; of booleans, not."""
def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x << y."""
def bitwise_not(x: ArrayLike, /) -> Array:
    """All bits inverted; of booleans, not."""
bitwise_or: _BinaryUfunc
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2; signed integers keep their sign."""
bitwise_xor: _BinaryUfunc
def blackman(M: int) -> Array:
    """The Blackman window."""
def block(arrays: ArrayLike | list[Any]) -> Array:
    """An array assembled from nested lists of blocks."""
bool: _ScalarType
bool_: _ScalarType
def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arrays broadcast to their common shape."""
def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape to which all of these broadcast."""
def broadcast_to(array: ArrayLike, shape: int | Shape | np.ndarray[Any, Any], *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The array repeated along new axes and axes of size one."""
def cbrt(x: ArrayLike, /) -> Array:
    """The cube root."""
cdouble: _ScalarType
def ceil(x: ArrayLike, /) -> Array:
    """The least integer not below x."""
def choose(a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = 'raise') -> Array:
    """At each position the element of the choice that the index selects."""
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The elements clamped to [min, max]; either bound may be absent."""
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Vectors joined as the columns of a matrix."""
complex128: _ScalarType
complex64: _ScalarType
complex_: _ScalarType
def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *, size: int | None = None, fill_value: ArrayLike = 0, out: None = None) -> Array:
    """The slices along an axis for which a condition holds."""
def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an existing axis."""
def concatenate(arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along an existing axis."""
def conj(x: ArrayLike, /) -> Array:
    """The complex conjugate."""
def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate."""
def convolve(a: ArrayLike, v: ArrayLike, mode: str = 'full', *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The convolution of two vectors."""
def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of the array."""
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of x1 with the sign of x2."""
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: builtins.bool = True, dtype: DTypeLike | None = None) -> Array:
    """The correlation coefficients of variables in rows."""
def correlate(a: ArrayLike, v: ArrayLike, mode: str = 'valid', *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The correlation of two vectors."""
def cos(x: ArrayLike, /) -> Array:
    """The cosine."""
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine."""
def count_nonzero(a: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
    """The number of nonzero elements along axes."""
def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: builtins.bool = True, bias: builtins.bool = False, ddof: ArrayLike | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, dtype: DTypeLike | None = None) -> Array:
    """The covariance matrix of variables in rows."""
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The cross product of vectors of two or three components."""
csingle: _ScalarType
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The cumulative product along an axis."""
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The cumulative sum along an axis."""
def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: builtins.bool = False) -> Array:
    """The cumulative product in the array API's form."""
def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: builtins.bool = False) -> Array:
    """The cumulative sum in the array API's form, small integers widened."""
def deg2rad(x: ArrayLike, /) -> Array:
    """Converts degrees to radians."""
def degrees(x: ArrayLike, /) -> Array:
    """Converts radians to degrees."""
def delete(arr: ArrayLike, obj: ArrayLike | slice | Sequence[int], axis: int | None = None, *, assume_unique_indices: builtins.bool = False) -> Array:
    """The array without the given positions."""
def diag(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with this diagonal, or the diagonal of a matrix."""
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal."""
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array."""
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix whose diagonal holds all elements."""
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of two axes, as the last axis."""
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None) -> Array:
    """The nth differences of adjacent elements along an axis."""
def digitize(x: ArrayLike, bins: ArrayLike, right: builtins.bool = False, *, method: str | None = None) -> Array:
    """The bin that each value belongs to."""
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient of two arrays as a floating-point number."""
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The floor quotient and the remainder."""
def dot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The sum of products over the last axis of a and the second to last of b."""
double: _ScalarType
def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Splits an array along the third axis."""
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis."""
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of adjacent elements of the flattened array."""
def einsum(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[Any], out: None = None, optimize: str | builtins.bool | Sequence[Any] = 'auto', precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, _dot_general: Callable[..., Any] | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Sums of products named by the labels of axes: einsum('ij,jk->ik', a, b)."""
def einsum_path(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[Any], optimize: str | builtins.bool | Sequence[Any] = 'auto') -> tuple[list[tuple[int, ...] | str], str]:
    """The order in which einsum contracts its operands, and what it costs."""
def empty(shape: int | Shape | np.ndarray[Any, Any], dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array of unspecified elements, which are zeros."""
def empty_like(prototype: Prototype, dtype: DTypeLike | None = None, shape: int | Shape | np.ndarray[Any, Any] | None = None, *, device: Device | Sharding | None = None) -> Array:
    """An array of the type of another one, of unspecified elements, which are zeros."""
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x equals y."""
def exp(x: ArrayLike, /) -> Array:
    """e raised to the power x."""
def exp2(x: ArrayLike, /) -> Array:
    """2 raised to the power x."""
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """The array with new axes of size one at these positions of the result."""
def expm1(x: ArrayLike, /) -> Array:
    """exp(x) - 1, accurate near zero."""
def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements for which a condition holds."""
def eye(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere."""
def fabs(x: ArrayLike, /) -> Array:
    """The absolute value as a floating-point number."""
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: builtins.bool = False, *, inplace: builtins.bool = True) -> Array:
    """A copy with another main diagonal; needs inplace=False."""
def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array:
    """The positions of the elements that are not zero in the flattened array."""
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """The elements in reverse order along axes."""
def fliplr(m: ArrayLike) -> Array:
    """The columns in reverse order."""
def flipud(m: ArrayLike) -> Array:
    """The rows in reverse order."""
float16: _ScalarType
float32: _ScalarType
float4_e2m1fn: _ScalarType
float64: _ScalarType
float6_e2m3fn: _ScalarType
float6_e3m2fn: _ScalarType
float8_e3m4: _ScalarType
float8_e4m3: _ScalarType
float8_e4m3b11fnuz: _ScalarType
float8_e4m3fn: _ScalarType
float8_e4m3fnuz: _ScalarType
float8_e5m2: _ScalarType
float8_e5m2fnuz: _ScalarType
float8_e8m0fnu: _ScalarType
float_: _ScalarType
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x raised to the power y in floating point."""
def floor(x: ArrayLike, /) -> Array:
    """The greatest integer not above x."""
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient rounded toward minus infinity."""
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greater of two numbers; the other one where one is NaN."""
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The lesser of two numbers; the other one where one is NaN."""
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of truncating division; it has the dividend's sign."""
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """The mantissa in [0.5, 1) and the exponent e of x = mantissa * 2^e."""
def frombuffer(buffer: bytes | bytearray | memoryview | np.ndarray, dtype: DTypeLike = 'float', count: int = -1, offset: int = 0) -> Array:
    """The numbers stored in a buffer of bytes."""
def fromfunction(function: Callable[..., Any], shape: int | Shape | np.ndarray[Any, Any], *, dtype: DTypeLike = 'float', **kwargs: Any) -> Array:
    """function(i, j, ...) at every index of a grid."""
def fromstring(string: str, dtype: DTypeLike = 'float', count: int = -1, *, sep: str) -> Array:
    """The numbers written in a text, separated by sep."""
def full(shape: int | Shape | np.ndarray[Any, Any], fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array filled with one value, or with an array broadcast to the shape."""
def full_like(a: Prototype, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: int | Shape | np.ndarray[Any, Any] | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array of the type of another one, filled with one value."""
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor."""
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: builtins.bool = True, dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """Numbers from start to stop in geometric progression."""
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None) -> Array | list[Array]:
    """Central differences along each axis."""
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is greater than y; complex numbers by real, then imaginary part."""
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is at least y; complex numbers by real, then imaginary part."""
def hamming(M: int) -> Array:
    """The Hamming window."""
def hanning(M: int) -> Array:
    """The Hann window."""
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The step function: 0 below zero, x2 at zero, 1 above."""
def histogram(a: ArrayLike, bins: ArrayLike = 10, range: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | None = None, density: builtins.bool | None = None) -> tuple[Array, Array]:
    """The counts in bins, and the edges of the bins."""
def histogram2d(x: ArrayLike, y: ArrayLike, bins: ArrayLike | Sequence[ArrayLike] = 10, range: Sequence[ArrayLike | Sequence[ArrayLike] | None] | None = None, weights: ArrayLike | None = None, density: builtins.bool | None = None) -> tuple[Array, Array, Array]:
    """The counts of points in rectangles, and the edges along both dimensions."""
def histogram_bin_edges(a: ArrayLike, bins: ArrayLike = 10, range: ArrayLike | Sequence[ArrayLike] | None = None, weights: ArrayLike | None = None) -> Array:
    """The edges of the bins of a histogram."""
def histogramdd(sample: ArrayLike, bins: ArrayLike | Sequence[ArrayLike] = 10, range: Sequence[ArrayLike | Sequence[ArrayLike] | None] | None = None, weights: ArrayLike | None = None, density: builtins.bool | None = None) -> tuple[Array, list[Array]]:
    """The counts in boxes, and the edges along each dimension."""
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Splits an array along the second axis, or the first of a vector."""
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined side by side, along the second axis."""
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1^2 + x2^2) without overflow."""
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, order zero."""
def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix."""
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part."""
@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False) -> Array: ...
@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]) -> tuple[Array, ...]: ...
@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: builtins.bool = False) -> Array | tuple[Array, ...]:
    """The indices of every element of a grid."""
def inner(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products over the last axes."""
def insert(arr: ArrayLike, obj: ArrayLike | slice | Sequence[int], values: ArrayLike, axis: int | None = None) -> Array:
    """The array with values inserted before the given positions."""
int1: _ScalarType
int16: _ScalarType
int2: _ScalarType
int32: _ScalarType
int4: _ScalarType
int64: _ScalarType
int8: _ScalarType
int_: _ScalarType
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None, right: ArrayLike | str | None = None, period: ArrayLike | None = None) -> Array:
    """The piecewise linear function through the given points."""
@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = False, return_indices: Literal[False] = False, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array: ...
@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = False, *, return_indices: Literal[True], size: int | None = None, fill_value: ArrayLike | None = None) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = False, return_indices: builtins.bool = False, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array | tuple[Array, Array, Array]:
    """The sorted elements that are in both arrays."""
def invert(x: ArrayLike, /) -> Array:
    """All bits inverted; of booleans, not."""
def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: builtins.bool = False) -> Array:
    """Whether |a - b| <= atol + rtol |b|."""
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero."""
def iscomplexobj(x: Any) -> builtins.bool:
    """Whether this is a complex number or an array of them."""
def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither infinite nor NaN."""
def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: builtins.bool = False, invert: builtins.bool = False, *, method: str = 'auto') -> Array:
    """Whether each element is among the test elements."""
def isinf(x: ArrayLike, /) -> Array:
    """Whether x is infinite."""
def isnan(x: ArrayLike, /) -> Array:
    """Whether x is NaN."""
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is negative infinity."""
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is positive infinity."""
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero."""
def isrealobj(x: Any) -> builtins.bool:
    """Whether this is neither a complex number nor an array of them."""
def isscalar(element: Any) -> builtins.bool:
    """Whether this is a number or an array without axes."""
def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors shaped so that they index an open grid."""
def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window; beta sets its width."""
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: blocks of b scaled by the elements of a."""
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple."""
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2^x2."""
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x << y."""
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is less than y; complex numbers by real, then imaginary part."""
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x is at most y; complex numbers by real, then imaginary part."""
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The positions that sort by several keys, the last one first."""
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: builtins.bool = True, retstep: Literal[False] = False, dtype: DTypeLike | None = None, axis: int = 0, *, device: Device | Sharding | None = None) -> Array: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: builtins.bool = True, *, retstep: Literal[True], dtype: DTypeLike | None = None, axis: int = 0, device: Device | Sharding | None = None) -> tuple[Array, Array]: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: builtins.bool = True, retstep: builtins.bool = False, dtype: DTypeLike | None = None, axis: int = 0, *, device: Device | Sharding | None = None) -> Array | tuple[Array, Array]:
    """Numbers evenly spaced from start to stop."""
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm."""
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10."""
def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), accurate near zero."""
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2."""
logaddexp: _BinaryUfunc
logaddexp2: _BinaryUfunc
logical_and: _BinaryUfunc
def logical_not(x: ArrayLike, /) -> Array:
    """Whether the number is zero."""
logical_or: _BinaryUfunc
logical_xor: _BinaryUfunc
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: builtins.bool = True, base: ArrayLike = 10.0, dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """Numbers evenly spaced on a logarithmic scale, from base^start to base^stop."""
def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Array, Array]:
    """The indices of an n x n array where a mask of ones is not zero."""
def matmul(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The matrix product; leading axes are batches."""
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes exchanged."""
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices times vectors; leading axes are batches."""
def max(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The greatest element along axes; NaN where there is one."""
maximum: _BinaryUfunc
def mean(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: builtins.bool = False, *, where: ArrayLike | None = None) -> Array:
    """The mean along axes."""
def median(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, overwrite_input: builtins.bool = False, keepdims: builtins.bool = False) -> Array:
    """The median along axes."""
def meshgrid(*xi: ArrayLike, copy: builtins.bool = True, sparse: builtins.bool = False, indexing: str = 'xy') -> list[Array]:
    """The coordinates of a grid's points, from the coordinates along each axis."""
def min(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The least element along axes; NaN where there is one."""
minimum: _BinaryUfunc
def mod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of floor division; it has the divisor's sign."""
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integer part, both with the sign of x."""
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with axes moved to other positions; the rest keep their order."""
multiply: _BinaryUfunc
def nan_to_num(x: ArrayLike, copy: builtins.bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None, neginf: ArrayLike | None = None) -> Array:
    """x with NaN and infinities replaced by finite values."""
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None) -> Array:
    """The first position of the greatest element that is not NaN; -1 where all are."""
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: builtins.bool | None = None) -> Array:
    """The first position of the least element that is not NaN; -1 where all are."""
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The cumulative product, with NaNs as ones."""
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The cumulative sum, with NaNs as zeros."""
def nanmax(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The greatest element that is not NaN."""
def nanmean(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: builtins.bool = False, where: ArrayLike | None = None) -> Array:
    """The mean of the elements that are not NaN."""
def nanmedian(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, overwrite_input: builtins.bool = False, keepdims: builtins.bool = False) -> Array:
    """The median of the elements that are not NaN."""
def nanmin(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The least element that is not NaN."""
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, overwrite_input: builtins.bool = False, method: str = 'linear', keepdims: builtins.bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The percentiles of the elements that are not NaN."""
def nanprod(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The product of the elements that are not NaN."""
def nanquantile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, overwrite_input: builtins.bool = False, method: str = 'linear', keepdims: builtins.bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The quantiles of the elements that are not NaN."""
def nanstd(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: ArrayLike = 0, keepdims: builtins.bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:
    """The standard deviation of the elements that are not NaN."""
def nansum(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The sum of the elements that are not NaN."""
def nanvar(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: ArrayLike = 0, keepdims: builtins.bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:
    """The variance of the elements that are not NaN."""
def ndim(a: Prototype) -> int:
    """The number of axes."""
negative: _UnaryUfunc
newaxis: None
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The floating-point number next to x in the direction of y."""
def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]:
    """The positions of the elements that are not zero, one array for each dimension."""
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x differs from y."""
def ones(shape: int | Shape | np.ndarray[Any, Any], dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array of ones."""
def ones_like(a: Prototype, dtype: DTypeLike | None = None, shape: int | Shape | np.ndarray[Any, Any] | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Ones of the type of another array."""
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The product of each element of a with each of b."""
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = 'big') -> Array:
    """Packs groups of eight booleans into the bits of bytes."""
def pad(array: ArrayLike, pad_width: int | ArrayLike | Sequence[Any] | dict[int, Any], mode: str | Callable[..., Any] = 'constant', **kwargs: Any) -> Array:
    """The array padded at both ends of each axis; the mode says with which values."""
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The array with its kth element in sorted position, smaller ones before it, greater ones after it."""
def percentile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, overwrite_input: builtins.bool = False, method: str = 'linear', keepdims: builtins.bool = False, *, weights: ArrayLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The percentiles along axes, q between 0 and 100."""
def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The array with its axes in the given order."""
def piecewise(x: ArrayLike, condlist: ArrayLike | Sequence[ArrayLike], funclist: Sequence[ArrayLike | Callable[..., Any]], *args: Any, **kw: Any) -> Array:
    """At each position the value of the last function whose condition holds, or a constant."""
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: builtins.bool = True) -> Array:
    """A copy with values, in order, where the mask is true; needs inplace=False."""
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with the given roots."""
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials."""
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The mth derivative of a polynomial."""
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: builtins.bool = False) -> tuple[Array, Array]:
    """The quotient of two polynomials and the remainder."""
@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: Literal[False] = False, w: ArrayLike | None = None, cov: Literal[False] = False) -> Array: ...
@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, *, full: Literal[True], w: ArrayLike | None = None, cov: builtins.bool | str = False) -> tuple[Array, ...]: ...
@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: builtins.bool = False, w: ArrayLike | None = None, *, cov: Literal[True]) -> tuple[Array, ...]: ...
@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: builtins.bool = False, w: ArrayLike | None = None, cov: builtins.bool | str = False) -> Array | tuple[Array, ...]:
    """The coefficients of the polynomial that fits points best."""
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The mth integral of a polynomial."""
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: builtins.bool = False) -> Array:
    """The product of two polynomials."""
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials."""
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial at each x."""
def positive(x: ArrayLike, /) -> Array:
    """+x: the elements unchanged."""
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 raised to the power x2; a known integer exponent multiplies."""
def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 raised to the power x2; a known integer exponent multiplies."""
def prod(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: builtins.bool = True) -> Array:
    """The product of the elements along axes."""
def ptp(a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: builtins.bool = False) -> Array:
    """The greatest minus the least element along axes."""
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | GatherScatterMode | None = None, *, inplace: builtins.bool = True) -> Array:
    """A copy with values at indices of the flattened array; needs inplace=False."""
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: builtins.bool = True, *, mode: str | GatherScatterMode | None = None) -> Array:
    """A copy with one value per index along an axis; needs inplace=False."""
def quantile(a: ArrayLike, q: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, overwrite_input: builtins.bool = False, method: str = 'linear', keepdims: builtins.bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The quantiles along axes, q between 0 and 1."""
def rad2deg(x: ArrayLike, /) -> Array:
    """Converts radians to degrees."""
def radians(x: ArrayLike, /) -> Array:
    """Converts degrees to radians."""
def ravel(a: ArrayLike, order: str = 'C', *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The array flattened to one dimension."""
def ravel_multi_index(multi_index: ArrayLike | Sequence[ArrayLike], dims: Sequence[int], mode: str = 'raise', order: str = 'C', *, dtype: DTypeLike | None = None) -> Array:
    """The index into a flattened array of given coordinates."""
def real(val: ArrayLike, /) -> Array:
    """The real part."""
def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x."""
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of floor division; it has the divisor's sign."""
def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Each element repeated; traced repeats need total_repeat_length."""
def reshape(a: ArrayLike, shape: int | Shape | np.ndarray[Any, Any], order: str = 'C', *, copy: builtins.bool | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The same elements in another shape; one size may be -1."""
def resize(a: ArrayLike, new_shape: int | Shape | np.ndarray[Any, Any]) -> Array:
    """The array in a new shape; elements are repeated or dropped as needed."""
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2; signed integers keep their sign."""
def rint(x: ArrayLike, /) -> Array:
    """The nearest integer; ties go to the even one."""
def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """The elements shifted along axes; those shifted out at one end re-enter at the other."""
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with one axis moved back to the position before start."""
def roots(p: ArrayLike, *, strip_zeros: builtins.bool = True) -> Array:
    """The roots of a polynomial."""
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array rotated k times by 90 degrees, from the first axis toward the second."""
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The nearest number with this many decimals; ties go to the even one."""
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = 'left', sorter: ArrayLike | None = None, *, method: str = 'scan') -> Array:
    """Where values are to be inserted into a sorted vector."""
def select(condlist: ArrayLike | Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """At each position the element of the first choice whose condition holds."""
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = False, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The sorted elements of the first array that are not in the second."""
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = False, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The sorted elements that are in exactly one of two arrays."""
def shape(a: Prototype) -> tuple[int, ...]:
    """The sizes along the axes."""
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; of complex numbers, x divided by its modulus."""
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set, as it is for -0.0."""
def sin(x: ArrayLike, /) -> Array:
    """The sine."""
def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), and 1 at zero."""
single: _ScalarType
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine."""
def size(a: Prototype, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, in all or along some axes."""
def sort(a: ArrayLike, axis: int | None = -1, *, kind: str | None = None, order: str | None = None, stable: builtins.bool = True, descending: builtins.bool = False) -> Array:
    """The elements in ascending order along an axis, NaNs last."""
def sort_complex(a: ArrayLike) -> Array:
    """The sorted elements as complex numbers."""
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the floating-point number next to it."""
def split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Splits an array into equal sections, or at the given positions."""
def sqrt(x: ArrayLike, /) -> Array:
    """The square root."""
def square(x: ArrayLike, /) -> Array:
    """x * x."""
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """The array without its axes of size one, or without the given ones."""
def stack(arrays: ArrayLike | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape joined along a new axis."""
def std(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: ArrayLike = 0, keepdims: builtins.bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: ArrayLike | None = None) -> Array:
    """The standard deviation along axes."""
subtract: _BinaryUfunc
def sum(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: builtins.bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: builtins.bool = True) -> Array:
    """The sum of the elements along axes."""
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged."""
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | GatherScatterMode | None = None, unique_indices: builtins.bool = False, indices_are_sorted: builtins.bool = False, fill_value: ArrayLike | None = None) -> Array:
    """The slices at the indices along an axis; by default NaN or the least integer out of bounds."""
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: str | GatherScatterMode | None = None, fill_value: ArrayLike | None = None, *, wrap_negative_indices: builtins.bool | None = None) -> Array:
    """One element per index along an axis, as argsort and argmax give them."""
def tan(x: ArrayLike, /) -> Array:
    """The tangent."""
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent."""
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The sum of products over several axes."""
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """The whole array repeated along each axis."""
def trace(a: ArrayLike, offset: ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The sum over a diagonal."""
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes permuted; by default reversed."""
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule."""
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below a diagonal, and zeros above."""
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangle, zeros elsewhere."""
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the lower triangle."""
def tril_indices_from(arr: Prototype, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix."""
def trim_zeros(filt: ArrayLike, trim: str = 'fb', axis: int | Sequence[int] | None = None) -> Array:
    """Zeros removed from the front and the back; the values must be concrete."""
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangle, zeros elsewhere."""
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the upper triangle."""
def triu_indices_from(arr: Prototype, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix."""
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient of two arrays as a floating-point number."""
def trunc(x: ArrayLike) -> Array:
    """x rounded toward zero."""
uint: _ScalarType
uint1: _ScalarType
uint16: _ScalarType
uint2: _ScalarType
uint32: _ScalarType
uint4: _ScalarType
uint64: _ScalarType
uint8: _ScalarType
def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The sorted elements that are in either array."""
@overload
def unique(ar: ArrayLike, return_index: Literal[False] = False, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, axis: int | None = None, *, equal_nan: builtins.bool = True, size: int | None = None, fill_value: ArrayLike | None = None, sorted: builtins.bool = True) -> Array: ...
@overload
def unique(ar: ArrayLike, return_index: Literal[True], return_inverse: builtins.bool = False, return_counts: builtins.bool = False, axis: int | None = None, *, equal_nan: builtins.bool = True, size: int | None = None, fill_value: ArrayLike | None = None, sorted: builtins.bool = True) -> tuple[Array, ...]: ...
@overload
def unique(ar: ArrayLike, return_index: builtins.bool = False, *, return_inverse: Literal[True], return_counts: builtins.bool = False, axis: int | None = None, equal_nan: builtins.bool = True, size: int | None = None, fill_value: ArrayLike | None = None, sorted: builtins.bool = True) -> tuple[Array, ...]: ...
@overload
def unique(ar: ArrayLike, return_index: builtins.bool = False, return_inverse: builtins.bool = False, *, return_counts: Literal[True], axis: int | None = None, equal_nan: builtins.bool = True, size: int | None = None, fill_value: ArrayLike | None = None, sorted: builtins.bool = True) -> tuple[Array, ...]: ...
@overload
def unique(ar: ArrayLike, return_index: builtins.bool = False, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, axis: int | None = None, *, equal_nan: builtins.bool = True, size: int | None = None, fill_value: ArrayLike | None = None, sorted: builtins.bool = True) -> Array | tuple[Array, ...]:
    """The sorted distinct elements, or slices along an axis."""
class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array
def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueAllResult:
    """The distinct elements, their first positions, the inverse and the counts."""
class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array
def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueCountsResult:
    """The distinct elements and how often each occurs."""
class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array
def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueInverseResult:
    """The distinct elements and the indices that rebuild the input from them."""
def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The sorted distinct elements."""
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = 'big') -> Array:
    """The bits of each byte as zeros and ones."""
def unravel_index(indices: ArrayLike, shape: int | Shape | np.ndarray[Any, Any]) -> tuple[Array, ...]:
    """The coordinates of indices of a flattened array."""
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 6.283185307179586) -> Array:
    """Phases without jumps of whole periods."""
def vander(x: ArrayLike, N: int | None = None, increasing: builtins.bool = False) -> Array:
    """The matrix whose columns are powers of x."""
def var(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: ArrayLike = 0, keepdims: builtins.bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: ArrayLike | None = None) -> Array:
    """The variance along axes."""
def vdot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The dot product of the flattened arrays, a conjugated."""
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The dot product of vectors along an axis, x1 conjugated."""
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Conjugated vectors times matrices; leading axes are batches."""
def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Splits an array along the first axis."""
def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined as rows, along the first axis."""
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array: ...
@overload
def where(condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]:
    """x where the condition is true, else y; with the condition alone, the indices at which it is true."""
def zeros(shape: int | Shape | np.ndarray[Any, Any], dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array of zeros."""
def zeros_like(a: Prototype, dtype: DTypeLike | None = None, shape: int | Shape | np.ndarray[Any, Any] | None = None, *, device: Device | Sharding | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Zeros of the type of another array."""
