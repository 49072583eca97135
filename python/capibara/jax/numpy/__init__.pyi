"""Types of capibara.jax.numpy. Made by tools/python/make_stubs.py."""
from typing import Any

ComplexWarning: Any
def abs(x: Any) -> Any:
    """The absolute value; of complex numbers, the modulus."""
def absolute(x: Any) -> Any:
    """The absolute value; of complex numbers, the modulus."""
def acos(x: Any) -> Any:
    """The inverse cosine."""
def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine."""
def add(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The sum of two arrays; of booleans, whether one is true."""
def all(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...) -> Any:
    """Whether all elements along axes are true."""
def allclose(a: Any, b: Any, rtol: Any = ..., atol: Any = ..., equal_nan: Any = ...) -> Any:
    """Whether |a - b| <= atol + rtol |b| everywhere."""
def amax(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """Another name of max."""
def amin(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """Another name of min."""
def angle(z: Any, deg: Any = ...) -> Any:
    """The angle of a complex number in the plane, in radians or degrees."""
def any(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...) -> Any:
    """Whether any element along axes is true."""
def append(arr: Any, values: Any, axis: Any = ...) -> Any:
    """An array with values appended at its end."""
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of vectors applied to every vector along an axis."""
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """A function of an array and an axis applied for one axis after the other."""
def arange(start: Any, stop: Any = ..., step: Any = ..., dtype: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """Numbers from start (by default 0) up to, but without, stop."""
def arccos(x: Any) -> Any:
    """The inverse cosine."""
def arccosh(x: Any) -> Any:
    """The inverse hyperbolic cosine."""
def arcsin(x: Any) -> Any:
    """The inverse sine."""
def arcsinh(x: Any) -> Any:
    """The inverse hyperbolic sine."""
def arctan(x: Any) -> Any:
    """The inverse tangent."""
def arctan2(x1: Any, x2: Any) -> Any:
    """The angle of the point (x2, x1), in [-pi, pi]."""
def arctanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
def argmax(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ...) -> Any:
    """The first position of the greatest element."""
def argmin(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ...) -> Any:
    """The first position of the least element."""
def argpartition(a: Any, kth: Any, axis: Any = ...) -> Any:
    """The positions that partition an array around its kth element."""
def argsort(a: Any, axis: Any = ..., *, kind: Any = ..., order: Any = ..., stable: Any = ..., descending: Any = ..., dtype: Any = ...) -> Any:
    """The positions that sort an array along an axis."""
def argwhere(a: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The positions of the elements that are not zero, one row for each."""
def around(a: Any, decimals: Any = ..., out: Any = ...) -> Any:
    """The nearest number with this many decimals; ties go to the even one."""
def array(object: Any, dtype: Any = ..., *args: Any, copy: Any = ..., order: Any = ..., ndmin: Any = ..., device: Any = ..., out_sharding: Any = ...) -> Any:
    """A new array from numbers, arrays, or nested sequences of them."""
def array_equal(a1: Any, a2: Any, equal_nan: Any = ...) -> Any:
    """Whether two arrays have the same shape and elements."""
def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays are equal after broadcasting."""
def array_repr(arr: Any, max_line_width: Any = ..., precision: Any = ..., suppress_small: Any = ...) -> Any:
    """An array as text, as NumPy writes its repr."""
def array_split(ary: Any, indices_or_sections: Any, axis: Any = ...) -> Any:
    """Splits an array into sections whose sizes differ by at most one, or at the given positions."""
def array_str(a: Any, max_line_width: Any = ..., precision: Any = ..., suppress_small: Any = ...) -> Any:
    """An array as text, as NumPy writes it."""
def asarray(a: Any, dtype: Any = ..., order: Any = ..., *, copy: Any = ..., device: Any = ..., out_sharding: Any = ...) -> Any:
    """An array from numbers, arrays, or nested sequences of them; an array is returned as it is."""
def asin(x: Any) -> Any:
    """The inverse sine."""
def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine."""
def astype(x: Any, dtype: Any, *, copy: Any = ..., device: Any = ...) -> Any:
    """The elements converted to another dtype."""
def atan(x: Any) -> Any:
    """The inverse tangent."""
def atan2(x1: Any, x2: Any) -> Any:
    """The angle of the point (x2, x1), in [-pi, pi]."""
def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
def atleast_1d(*arys: Any) -> Any:
    """Turns scalars into arrays of one element."""
def atleast_2d(*arys: Any) -> Any:
    """Adds leading axes of size one up to two dimensions."""
def atleast_3d(*arys: Any) -> Any:
    """Adds axes of size one up to three dimensions."""
def average(a: Any, axis: Any = ..., weights: Any = ..., returned: Any = ..., keepdims: Any = ...) -> Any:
    """The weighted mean along axes; with returned=True also the sum of the weights."""
def bartlett(M: Any) -> Any:
    """A triangular window."""
bfloat16: Any
def bincount(x: Any, weights: Any = ..., minlength: Any = ..., *, length: Any = ..., out_sharding: Any = ...) -> Any:
    """How often each of 0, 1, ... occurs, or the sum of its weights."""
def bitwise_and(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The bits that both integers have."""
def bitwise_count(x: Any) -> Any:
    """The number of one bits in the absolute value."""
def bitwise_invert(x: Any) -> Any:
    """All bits inverted; of booleans, not."""
def bitwise_left_shift(x: Any, y: Any) -> Any:
    """x << y."""
def bitwise_not(x: Any) -> Any:
    """All bits inverted; of booleans, not."""
def bitwise_or(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The bits that one of the two integers has."""
def bitwise_right_shift(x1: Any, x2: Any) -> Any:
    """x1 >> x2; signed integers keep their sign."""
def bitwise_xor(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The bits that exactly one of the two integers has."""
def blackman(M: Any) -> Any:
    """The Blackman window."""
def block(arrays: Any) -> Any:
    """An array assembled from nested lists of blocks."""
bool: Any
bool_: Any
def broadcast_arrays(*args: Any) -> Any:
    """The arrays broadcast to their common shape."""
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape to which all of these broadcast."""
def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = ...) -> Any:
    """The array repeated along new axes and axes of size one."""
c_: Any
def can_cast(from_: Any, to: Any, casting: Any = ...) -> Any:
    """Whether a dtype can be cast to another by NumPy's rule."""
def cbrt(x: Any) -> Any:
    """The cube root."""
cdouble: Any
def ceil(x: Any) -> Any:
    """The least integer not below x."""
character: Any
def choose(a: Any, choices: Any, out: Any = ..., mode: Any = ...) -> Any:
    """At each position the element of the choice that the index selects."""
def clip(arr: Any = ..., min: Any = ..., max: Any = ...) -> Any:
    """The elements clamped to [min, max]; either bound may be absent."""
def column_stack(tup: Any) -> Any:
    """Vectors joined as the columns of a matrix."""
complex128: Any
complex64: Any
complex_: Any
complexfloating: Any
def compress(condition: Any, a: Any, axis: Any = ..., *, size: Any = ..., fill_value: Any = ..., out: Any = ...) -> Any:
    """The slices along an axis for which a condition holds."""
def concat(arrays: Any, *, axis: Any = ...) -> Any:
    """Arrays joined along an existing axis."""
def concatenate(arrays: Any, axis: Any = ..., dtype: Any = ...) -> Any:
    """Arrays joined along an existing axis."""
def conj(x: Any) -> Any:
    """The complex conjugate."""
def conjugate(x: Any) -> Any:
    """The complex conjugate."""
def convolve(a: Any, v: Any, mode: Any = ..., *, precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The convolution of two vectors."""
def copy(a: Any, order: Any = ...) -> Any:
    """A copy of the array."""
def copysign(x1: Any, x2: Any) -> Any:
    """The magnitude of x1 with the sign of x2."""
def corrcoef(x: Any, y: Any = ..., rowvar: Any = ..., dtype: Any = ...) -> Any:
    """The correlation coefficients of variables in rows."""
def correlate(a: Any, v: Any, mode: Any = ..., *, precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The correlation of two vectors."""
def cos(x: Any) -> Any:
    """The cosine."""
def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
def count_nonzero(a: Any, axis: Any = ..., keepdims: Any = ...) -> Any:
    """The number of nonzero elements along axes."""
def cov(m: Any, y: Any = ..., rowvar: Any = ..., bias: Any = ..., ddof: Any = ..., fweights: Any = ..., aweights: Any = ..., dtype: Any = ...) -> Any:
    """The covariance matrix of variables in rows."""
def cross(a: Any, b: Any, axisa: Any = ..., axisb: Any = ..., axisc: Any = ..., axis: Any = ...) -> Any:
    """The cross product of vectors of two or three components."""
csingle: Any
def cumprod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any:
    """The cumulative product along an axis."""
def cumsum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any:
    """The cumulative sum along an axis."""
def cumulative_prod(x: Any, *, axis: Any = ..., dtype: Any = ..., include_initial: Any = ...) -> Any:
    """The cumulative product in the array API's form."""
def cumulative_sum(x: Any, *, axis: Any = ..., dtype: Any = ..., include_initial: Any = ...) -> Any:
    """The cumulative sum in the array API's form, small integers widened."""
def custom_op(x: Any, *operands: Any, optimization: Any = ..., **parameters: Any) -> Any:
    """unchanged. Further operands and parameters are handed to the primitive."""
def deg2rad(x: Any) -> Any:
    """Converts degrees to radians."""
def degrees(x: Any) -> Any:
    """Converts radians to degrees."""
def delete(arr: Any, obj: Any, axis: Any = ..., *, assume_unique_indices: Any = ...) -> Any:
    """The array without the given positions."""
def diag(v: Any, k: Any = ...) -> Any:
    """A matrix with this diagonal, or the diagonal of a matrix."""
def diag_indices(n: Any, ndim: Any = ...) -> Any:
    """The indices of the main diagonal."""
def diag_indices_from(arr: Any) -> Any:
    """The indices of the main diagonal of an array."""
def diagflat(v: Any, k: Any = ...) -> Any:
    """A matrix whose diagonal holds all elements."""
def diagonal(a: Any, offset: Any = ..., axis1: Any = ..., axis2: Any = ...) -> Any:
    """The diagonals of two axes, as the last axis."""
def diff(a: Any, n: Any = ..., axis: Any = ..., prepend: Any = ..., append: Any = ...) -> Any:
    """The nth differences of adjacent elements along an axis."""
def digitize(x: Any, bins: Any, right: Any = ..., *, method: Any = ...) -> Any:
    """The bin that each value belongs to."""
def divide(x1: Any, x2: Any) -> Any:
    """The quotient of two arrays as a floating-point number."""
def divmod(x1: Any, x2: Any) -> Any:
    """The floor quotient and the remainder."""
def dot(a: Any, b: Any, *, precision: Any = ..., preferred_element_type: Any = ..., out_sharding: Any = ...) -> Any:
    """The sum of products over the last axis of a and the second to last of b."""
double: Any
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Splits an array along the third axis."""
def dstack(tup: Any, dtype: Any = ...) -> Any:
    """Arrays joined along the third axis."""
dtype: Any
e: Any
def ediff1d(ary: Any, to_end: Any = ..., to_begin: Any = ...) -> Any:
    """The differences of adjacent elements of the flattened array."""
def einsum(subscripts: Any, *operands: Any, out: Any = ..., optimize: Any = ..., precision: Any = ..., preferred_element_type: Any = ..., _dot_general: Any = ..., out_sharding: Any = ...) -> Any:
    """Sums of products named by the labels of axes: einsum('ij,jk->ik', a, b)."""
def einsum_path(subscripts: Any, *operands: Any, optimize: Any = ...) -> Any:
    """The order in which einsum contracts its operands, and what it costs."""
def empty(shape: Any, dtype: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """An array of unspecified elements, which are zeros."""
def empty_like(prototype: Any, dtype: Any = ..., shape: Any = ..., *, device: Any = ...) -> Any:
    """An array of the type of another one, of unspecified elements, which are zeros."""
def equal(x: Any, y: Any) -> Any:
    """Whether x equals y."""
euler_gamma: Any
def exp(x: Any) -> Any:
    """e raised to the power x."""
def exp2(x: Any) -> Any:
    """2 raised to the power x."""
def expand_dims(a: Any, axis: Any) -> Any:
    """The array with new axes of size one at these positions of the result."""
def expm1(x: Any) -> Any:
    """exp(x) - 1, accurate near zero."""
def extract(condition: Any, arr: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The elements for which a condition holds."""
def eye(N: Any, M: Any = ..., k: Any = ..., dtype: Any = ..., *, device: Any = ...) -> Any:
    """A matrix with ones on a diagonal and zeros elsewhere."""
def fabs(x: Any) -> Any:
    """The absolute value as a floating-point number."""
from . import fft as fft
def fill_diagonal(a: Any, val: Any, wrap: Any = ..., *, inplace: Any = ...) -> Any:
    """A copy with another main diagonal; needs inplace=False."""
finfo: Any
def flatnonzero(a: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The positions of the elements that are not zero in the flattened array."""
flexible: Any
def flip(m: Any, axis: Any = ...) -> Any:
    """The elements in reverse order along axes."""
def fliplr(m: Any) -> Any:
    """The columns in reverse order."""
def flipud(m: Any) -> Any:
    """The rows in reverse order."""
float16: Any
float32: Any
float4_e2m1fn: Any
float64: Any
float8_e3m4: Any
float8_e4m3: Any
float8_e4m3b11fnuz: Any
float8_e4m3fn: Any
float8_e4m3fnuz: Any
float8_e5m2: Any
float8_e5m2fnuz: Any
float8_e8m0fnu: Any
float_: Any
def float_power(x: Any, y: Any) -> Any:
    """x raised to the power y in floating point."""
floating: Any
def floor(x: Any) -> Any:
    """The greatest integer not above x."""
def floor_divide(x1: Any, x2: Any) -> Any:
    """The quotient rounded toward minus infinity."""
def fmax(x1: Any, x2: Any) -> Any:
    """The greater of two numbers; the other one where one is NaN."""
def fmin(x1: Any, x2: Any) -> Any:
    """The lesser of two numbers; the other one where one is NaN."""
def fmod(x1: Any, x2: Any) -> Any:
    """The remainder of truncating division; it has the dividend's sign."""
def frexp(x: Any) -> Any:
    """The mantissa in [0.5, 1) and the exponent e of x = mantissa * 2^e."""
def from_dlpack(x: Any, *, device: Any = ..., copy: Any = ...) -> Any:
    """An array of another library, sharing its memory where it can."""
def frombuffer(buffer: Any, dtype: Any = ..., count: Any = ..., offset: Any = ...) -> Any:
    """The numbers stored in a buffer of bytes."""
def fromfunction(function: Any, shape: Any, *, dtype: Any = ..., **kwargs: Any) -> Any:
    """function(i, j, ...) at every index of a grid."""
def frompyfunc(func: Any, nin: Any, nout: Any, *, identity: Any = ...) -> Any:
    """A universal function from a function of scalars."""
def fromstring(string: Any, dtype: Any = ..., count: Any = ..., *, sep: Any) -> Any:
    """The numbers written in a text, separated by sep."""
def full(shape: Any, fill_value: Any, dtype: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """An array filled with one value, or with an array broadcast to the shape."""
def full_like(a: Any, fill_value: Any, dtype: Any = ..., shape: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """An array of the type of another one, filled with one value."""
def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor."""
generic: Any
def geomspace(start: Any, stop: Any, num: Any = ..., endpoint: Any = ..., dtype: Any = ..., axis: Any = ...) -> Any:
    """Numbers from start to stop in geometric progression."""
def get_printoptions() -> Any:
    """100"""
def gradient(f: Any, *varargs: Any, axis: Any = ..., edge_order: Any = ...) -> Any:
    """Central differences along each axis."""
def greater(x: Any, y: Any) -> Any:
    """Whether x is greater than y; complex numbers by real, then imaginary part."""
def greater_equal(x: Any, y: Any) -> Any:
    """Whether x is at least y; complex numbers by real, then imaginary part."""
def hamming(M: Any) -> Any:
    """The Hamming window."""
def hanning(M: Any) -> Any:
    """The Hann window."""
def heaviside(x1: Any, x2: Any) -> Any:
    """The step function: 0 below zero, x2 at zero, 1 above."""
def histogram(a: Any, bins: Any = ..., range: Any = ..., weights: Any = ..., density: Any = ...) -> Any:
    """The counts in bins, and the edges of the bins."""
def histogram2d(x: Any, y: Any, bins: Any = ..., range: Any = ..., weights: Any = ..., density: Any = ...) -> Any:
    """The counts of points in rectangles, and the edges along both dimensions."""
def histogram_bin_edges(a: Any, bins: Any = ..., range: Any = ..., weights: Any = ...) -> Any:
    """The edges of the bins of a histogram."""
def histogramdd(sample: Any, bins: Any = ..., range: Any = ..., weights: Any = ..., density: Any = ...) -> Any:
    """The counts in boxes, and the edges along each dimension."""
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Splits an array along the second axis, or the first of a vector."""
def hstack(tup: Any, dtype: Any = ...) -> Any:
    """Arrays joined side by side, along the second axis."""
def hypot(x1: Any, x2: Any) -> Any:
    """sqrt(x1^2 + x2^2) without overflow."""
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, order zero."""
def identity(n: Any, dtype: Any = ...) -> Any:
    """The identity matrix."""
class iinfo(Any): ...
def imag(val: Any) -> Any:
    """The imaginary part."""
index_exp: Any
def indices(dimensions: Any, dtype: Any = ..., sparse: Any = ...) -> Any:
    """The indices of every element of a grid."""
inexact: Any
inf: Any
def inner(a: Any, b: Any, *, precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The sum of products over the last axes."""
def insert(arr: Any, obj: Any, values: Any, axis: Any = ...) -> Any:
    """The array with values inserted before the given positions."""
int16: Any
int2: Any
int32: Any
int4: Any
int64: Any
int8: Any
int_: Any
integer: Any
def interp(x: Any, xp: Any, fp: Any, left: Any = ..., right: Any = ..., period: Any = ...) -> Any:
    """The piecewise linear function through the given points."""
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = ..., return_indices: Any = ..., *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The sorted elements that are in both arrays."""
def invert(x: Any) -> Any:
    """All bits inverted; of booleans, not."""
def isclose(a: Any, b: Any, rtol: Any = ..., atol: Any = ..., equal_nan: Any = ...) -> Any:
    """Whether |a - b| <= atol + rtol |b|."""
def iscomplex(x: Any) -> Any:
    """Whether the imaginary part is not zero."""
def iscomplexobj(x: Any) -> Any:
    """Whether a value, or a scalar type such as complex64, is of a complex dtype."""
def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a dtype is of a kind of the array API."""
def isfinite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN."""
def isin(element: Any, test_elements: Any, assume_unique: Any = ..., invert: Any = ..., *, method: Any = ...) -> Any:
    """Whether each element is among the test elements."""
def isinf(x: Any) -> Any:
    """Whether x is infinite."""
def isnan(x: Any) -> Any:
    """Whether x is NaN."""
def isneginf(x: Any, out: Any = ...) -> Any:
    """Whether x is negative infinity."""
def isposinf(x: Any, out: Any = ...) -> Any:
    """Whether x is positive infinity."""
def isreal(x: Any) -> Any:
    """Whether the imaginary part is zero."""
def isrealobj(x: Any) -> Any:
    """Whether this is neither a complex number nor an array of them."""
def isscalar(element: Any) -> Any:
    """Whether a value is a scalar: a number, or an array of rank 0."""
def issubdtype(a: Any, b: Any) -> Any:
    """NumPy's issubdtype, with small floats, integers and keys in their places."""
def iterable(y: Any) -> Any:
    """    False"""
def ix_(*args: Any) -> Any:
    """Vectors shaped so that they index an open grid."""
def kaiser(M: Any, beta: Any) -> Any:
    """The Kaiser window; beta sets its width."""
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: blocks of b scaled by the elements of a."""
def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple."""
def ldexp(x1: Any, x2: Any) -> Any:
    """x1 * 2^x2."""
def left_shift(x: Any, y: Any) -> Any:
    """x << y."""
def less(x: Any, y: Any) -> Any:
    """Whether x is less than y; complex numbers by real, then imaginary part."""
def less_equal(x: Any, y: Any) -> Any:
    """Whether x is at most y; complex numbers by real, then imaginary part."""
def lexsort(keys: Any, axis: Any = ...) -> Any:
    """The positions that sort by several keys, the last one first."""
from . import linalg as linalg
def linspace(start: Any, stop: Any, num: Any = ..., endpoint: Any = ..., retstep: Any = ..., dtype: Any = ..., axis: Any = ..., *, device: Any = ...) -> Any:
    """Numbers evenly spaced from start to stop."""
def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """An array from a .npy file, or several from a .npz one."""
def log(x: Any) -> Any:
    """The natural logarithm."""
def log10(x: Any) -> Any:
    """The logarithm to base 10."""
def log1p(x: Any) -> Any:
    """log(1 + x), accurate near zero."""
def log2(x: Any) -> Any:
    """The logarithm to base 2."""
def logaddexp(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """log(exp(x1) + exp(x2)) without overflow."""
def logaddexp2(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """log2(2^x1 + 2^x2) without overflow."""
def logical_and(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """Whether both are nonzero."""
def logical_not(x: Any) -> Any:
    """Whether the number is zero."""
def logical_or(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """Whether one of the two is nonzero."""
def logical_xor(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """Whether exactly one of the two is nonzero."""
def logspace(start: Any, stop: Any, num: Any = ..., endpoint: Any = ..., base: Any = ..., dtype: Any = ..., axis: Any = ...) -> Any:
    """Numbers evenly spaced on a logarithmic scale, from base^start to base^stop."""
def mask_indices(n: Any, mask_func: Any, k: Any = ..., *, size: Any = ...) -> Any:
    """The indices of an n x n array where a mask of ones is not zero."""
def matmul(a: Any, b: Any, *, precision: Any = ..., preferred_element_type: Any = ..., out_sharding: Any = ...) -> Any:
    """The matrix product; leading axes are batches."""
def matrix_transpose(x: Any) -> Any:
    """The array with its last two axes exchanged."""
def matvec(x1: Any, x2: Any) -> Any:
    """Matrices times vectors; leading axes are batches."""
def max(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """The greatest element along axes; NaN where there is one."""
def maximum(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The greater of two numbers; NaN where one is NaN."""
def mean(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., *, where: Any = ...) -> Any:
    """The mean along axes."""
def median(a: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., keepdims: Any = ...) -> Any:
    """The median along axes."""
def meshgrid(*xi: Any, copy: Any = ..., sparse: Any = ..., indexing: Any = ...) -> Any:
    """The coordinates of a grid's points, from the coordinates along each axis."""
mgrid: Any
def min(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """The least element along axes; NaN where there is one."""
def minimum(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The lesser of two numbers; NaN where one is NaN."""
def mod(x1: Any, x2: Any) -> Any:
    """The remainder of floor division; it has the divisor's sign."""
def modf(x: Any, out: Any = ...) -> Any:
    """The fractional and the integer part, both with the sign of x."""
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """The array with axes moved to other positions; the rest keep their order."""
def multiply(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The product of two arrays; of booleans, whether both are true."""
nan: Any
def nan_to_num(x: Any, copy: Any = ..., nan: Any = ..., posinf: Any = ..., neginf: Any = ...) -> Any:
    """x with NaN and infinities replaced by finite values."""
def nanargmax(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ...) -> Any:
    """The first position of the greatest element that is not NaN; -1 where all are."""
def nanargmin(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ...) -> Any:
    """The first position of the least element that is not NaN; -1 where all are."""
def nancumprod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any:
    """The cumulative product, with NaNs as ones."""
def nancumsum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any:
    """The cumulative sum, with NaNs as zeros."""
def nanmax(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """The greatest element that is not NaN."""
def nanmean(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., where: Any = ...) -> Any:
    """The mean of the elements that are not NaN."""
def nanmedian(a: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., keepdims: Any = ...) -> Any:
    """The median of the elements that are not NaN."""
def nanmin(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """The least element that is not NaN."""
def nanpercentile(a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., method: Any = ..., keepdims: Any = ..., *, weights: Any = ...) -> Any:
    """The percentiles of the elements that are not NaN."""
def nanprod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """The product of the elements that are not NaN."""
def nanquantile(a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., method: Any = ..., keepdims: Any = ..., *, weights: Any = ...) -> Any:
    """The quantiles of the elements that are not NaN."""
def nanstd(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ..., keepdims: Any = ..., where: Any = ..., mean: Any = ...) -> Any:
    """The standard deviation of the elements that are not NaN."""
def nansum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ...) -> Any:
    """The sum of the elements that are not NaN."""
def nanvar(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ..., keepdims: Any = ..., where: Any = ..., mean: Any = ...) -> Any:
    """The variance of the elements that are not NaN."""
class ndarray(Any): ...
def ndim(a: Any) -> Any:
    """The number of axes."""
def negative(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """-x."""
newaxis: Any
def nextafter(x: Any, y: Any) -> Any:
    """The floating-point number next to x in the direction of y."""
def nonzero(a: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The positions of the elements that are not zero, one array for each dimension."""
def not_equal(x: Any, y: Any) -> Any:
    """Whether x differs from y."""
number: Any
object_: Any
ogrid: Any
def ones(shape: Any, dtype: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """An array of ones."""
def ones_like(a: Any, dtype: Any = ..., shape: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """Ones of the type of another array."""
def outer(a: Any, b: Any, out: Any = ...) -> Any:
    """The product of each element of a with each of b."""
def packbits(a: Any, axis: Any = ..., bitorder: Any = ...) -> Any:
    """Packs groups of eight booleans into the bits of bytes."""
def pad(array: Any, pad_width: Any, mode: Any = ..., **kwargs: Any) -> Any:
    """The array padded at both ends of each axis; the mode says with which values."""
def partition(a: Any, kth: Any, axis: Any = ...) -> Any:
    """The array with its kth element in sorted position, smaller ones before it, greater ones after it."""
def percentile(a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., method: Any = ..., keepdims: Any = ..., *, weights: Any = ..., out_sharding: Any = ...) -> Any:
    """The percentiles along axes, q between 0 and 100."""
def permute_dims(a: Any, axes: Any) -> Any:
    """The array with its axes in the given order."""
pi: Any
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """At each position the value of the last function whose condition holds, or a constant."""
def place(arr: Any, mask: Any, vals: Any, *, inplace: Any = ...) -> Any:
    """A copy with values, in order, where the mask is true; needs inplace=False."""
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with the given roots."""
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials."""
def polyder(p: Any, m: Any = ...) -> Any:
    """The mth derivative of a polynomial."""
def polydiv(u: Any, v: Any, *, trim_leading_zeros: Any = ...) -> Any:
    """The quotient of two polynomials and the remainder."""
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = ..., full: Any = ..., w: Any = ..., cov: Any = ...) -> Any:
    """The coefficients of the polynomial that fits points best."""
def polyint(p: Any, m: Any = ..., k: Any = ...) -> Any:
    """The mth integral of a polynomial."""
def polymul(a1: Any, a2: Any, *, trim_leading_zeros: Any = ...) -> Any:
    """The product of two polynomials."""
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
def polyval(p: Any, x: Any, *, unroll: Any = ...) -> Any:
    """The value of a polynomial at each x."""
def positive(x: Any) -> Any:
    """+x: the elements unchanged."""
def pow(x1: Any, x2: Any) -> Any:
    """x1 raised to the power x2; a known integer exponent multiplies."""
def power(x1: Any, x2: Any) -> Any:
    """x1 raised to the power x2; a known integer exponent multiplies."""
def printoptions(*args: Any, **kwargs: Any) -> Any:
    """**Concurrency note:** see :ref:`text_formatting_options`"""
def prod(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ..., promote_integers: Any = ...) -> Any:
    """The product of the elements along axes."""
def promote_types(a: Any, b: Any) -> Any:
    """The dtype two dtypes promote to."""
def ptp(a: Any, axis: Any = ..., out: Any = ..., keepdims: Any = ...) -> Any:
    """The greatest minus the least element along axes."""
def put(a: Any, ind: Any, v: Any, mode: Any = ..., *, inplace: Any = ...) -> Any:
    """A copy with values at indices of the flattened array; needs inplace=False."""
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any, inplace: Any = ..., *, mode: Any = ...) -> Any:
    """A copy with one value per index along an axis; needs inplace=False."""
def quantile(a: Any, q: Any, axis: Any = ..., out: Any = ..., overwrite_input: Any = ..., method: Any = ..., keepdims: Any = ..., *, weights: Any = ...) -> Any:
    """The quantiles along axes, q between 0 and 1."""
r_: Any
def rad2deg(x: Any) -> Any:
    """Converts radians to degrees."""
def radians(x: Any) -> Any:
    """Converts degrees to radians."""
def ravel(a: Any, order: Any = ..., *, out_sharding: Any = ...) -> Any:
    """The array flattened to one dimension."""
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = ..., order: Any = ..., *, dtype: Any = ...) -> Any:
    """The index into a flattened array of given coordinates."""
def real(val: Any) -> Any:
    """The real part."""
def reciprocal(x: Any) -> Any:
    """1 / x."""
def remainder(x1: Any, x2: Any) -> Any:
    """The remainder of floor division; it has the divisor's sign."""
def repeat(a: Any, repeats: Any, axis: Any = ..., *, total_repeat_length: Any = ..., out_sharding: Any = ...) -> Any:
    """Each element repeated; traced repeats need total_repeat_length."""
def reshape(a: Any, shape: Any, order: Any = ..., *, copy: Any = ..., out_sharding: Any = ...) -> Any:
    """The same elements in another shape; one size may be -1."""
def resize(a: Any, new_shape: Any) -> Any:
    """The array in a new shape; elements are repeated or dropped as needed."""
def result_type(*args: Any) -> Any:
    """The dtype an operation on these values, dtypes or types has."""
def right_shift(x1: Any, x2: Any) -> Any:
    """x1 >> x2; signed integers keep their sign."""
def rint(x: Any) -> Any:
    """The nearest integer; ties go to the even one."""
def roll(a: Any, shift: Any, axis: Any = ...) -> Any:
    """The elements shifted along axes; those shifted out at one end re-enter at the other."""
def rollaxis(a: Any, axis: Any, start: Any = ...) -> Any:
    """The array with one axis moved back to the position before start."""
def roots(p: Any, *, strip_zeros: Any = ...) -> Any:
    """The roots of a polynomial."""
def rot90(m: Any, k: Any = ..., axes: Any = ...) -> Any:
    """The array rotated k times by 90 degrees, from the first axis toward the second."""
def round(a: Any, decimals: Any = ..., out: Any = ...) -> Any:
    """The nearest number with this many decimals; ties go to the even one."""
s_: Any
def save(file: Any, arr: Any, allow_pickle: Any = ...) -> Any:
    """# [1 2] [1 3]"""
def savez(file: Any, *args: Any, allow_pickle: Any = ..., **kwds: Any) -> Any:
    """array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])"""
def searchsorted(a: Any, v: Any, side: Any = ..., sorter: Any = ..., *, method: Any = ...) -> Any:
    """Where values are to be inserted into a sorted vector."""
def select(condlist: Any, choicelist: Any, default: Any = ...) -> Any:
    """At each position the element of the first choice whose condition holds."""
def set_printoptions(precision: Any = ..., threshold: Any = ..., edgeitems: Any = ..., linewidth: Any = ..., suppress: Any = ..., nanstr: Any = ..., infstr: Any = ..., formatter: Any = ..., sign: Any = ..., floatmode: Any = ..., *, legacy: Any = ..., override_repr: Any = ...) -> Any:
    """array([ 0.  ,  1.11,  2.22, ...,  7.78,  8.89, 10.  ], shape=(10,))"""
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = ..., *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The sorted elements of the first array that are not in the second."""
def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = ..., *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The sorted elements that are in exactly one of two arrays."""
def shape(a: Any) -> Any:
    """The sizes along the axes."""
def sign(x: Any) -> Any:
    """-1, 0 or 1; of complex numbers, x divided by its modulus."""
def signbit(x: Any) -> Any:
    """Whether the sign bit is set, as it is for -0.0."""
signedinteger: Any
def sin(x: Any) -> Any:
    """The sine."""
def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), and 1 at zero."""
single: Any
def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
def size(a: Any, axis: Any = ...) -> Any:
    """The number of elements, in all or along some axes."""
def sort(a: Any, axis: Any = ..., *, kind: Any = ..., order: Any = ..., stable: Any = ..., descending: Any = ...) -> Any:
    """The elements in ascending order along an axis, NaNs last."""
def sort_complex(a: Any) -> Any:
    """The sorted elements as complex numbers."""
def spacing(x: Any) -> Any:
    """The distance from x to the floating-point number next to it."""
def split(ary: Any, indices_or_sections: Any, axis: Any = ...) -> Any:
    """Splits an array into equal sections, or at the given positions."""
def sqrt(x: Any) -> Any:
    """The square root."""
def square(x: Any) -> Any:
    """x * x."""
def squeeze(a: Any, axis: Any = ...) -> Any:
    """The array without its axes of size one, or without the given ones."""
def stack(arrays: Any, axis: Any = ..., out: Any = ..., dtype: Any = ...) -> Any:
    """Arrays of one shape joined along a new axis."""
def std(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ..., keepdims: Any = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...) -> Any:
    """The standard deviation along axes."""
def subtract(*args: Any, out: Any = ..., where: Any = ...) -> Any:
    """The difference of two arrays."""
def sum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., keepdims: Any = ..., initial: Any = ..., where: Any = ..., promote_integers: Any = ...) -> Any:
    """The sum of the elements along axes."""
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """The array with two axes exchanged."""
def take(a: Any, indices: Any, axis: Any = ..., out: Any = ..., mode: Any = ..., unique_indices: Any = ..., indices_are_sorted: Any = ..., fill_value: Any = ...) -> Any:
    """The slices at the indices along an axis; by default NaN or the least integer out of bounds."""
def take_along_axis(arr: Any, indices: Any, axis: Any = ..., mode: Any = ..., fill_value: Any = ..., *, wrap_negative_indices: Any = ...) -> Any:
    """One element per index along an axis, as argsort and argmax give them."""
def tan(x: Any) -> Any:
    """The tangent."""
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
def tensordot(a: Any, b: Any, axes: Any = ..., *, precision: Any = ..., preferred_element_type: Any = ..., out_sharding: Any = ...) -> Any:
    """The sum of products over several axes."""
def tile(A: Any, reps: Any) -> Any:
    """The whole array repeated along each axis."""
def trace(a: Any, offset: Any = ..., axis1: Any = ..., axis2: Any = ..., dtype: Any = ..., out: Any = ...) -> Any:
    """The sum over a diagonal."""
def transpose(a: Any, axes: Any = ...) -> Any:
    """The array with its axes permuted; by default reversed."""
def trapezoid(y: Any, x: Any = ..., dx: Any = ..., axis: Any = ...) -> Any:
    """The integral along an axis by the trapezoidal rule."""
def tri(N: Any, M: Any = ..., k: Any = ..., dtype: Any = ...) -> Any:
    """A matrix with ones on and below a diagonal, and zeros above."""
def tril(m: Any, k: Any = ...) -> Any:
    """The lower triangle, zeros elsewhere."""
def tril_indices(n: Any, k: Any = ..., m: Any = ...) -> Any:
    """The indices of the lower triangle."""
def tril_indices_from(arr: Any, k: Any = ...) -> Any:
    """The indices of the lower triangle of a matrix."""
def trim_zeros(filt: Any, trim: Any = ..., axis: Any = ...) -> Any:
    """Zeros removed from the front and the back; the values must be concrete."""
def triu(m: Any, k: Any = ...) -> Any:
    """The upper triangle, zeros elsewhere."""
def triu_indices(n: Any, k: Any = ..., m: Any = ...) -> Any:
    """The indices of the upper triangle."""
def triu_indices_from(arr: Any, k: Any = ...) -> Any:
    """The indices of the upper triangle of a matrix."""
def true_divide(x1: Any, x2: Any) -> Any:
    """The quotient of two arrays as a floating-point number."""
def trunc(x: Any) -> Any:
    """x rounded toward zero."""
class ufunc(Any): ...
uint: Any
uint16: Any
uint2: Any
uint32: Any
uint4: Any
uint64: Any
uint8: Any
def union1d(ar1: Any, ar2: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The sorted elements that are in either array."""
def unique(ar: Any, return_index: Any = ..., return_inverse: Any = ..., return_counts: Any = ..., axis: Any = ..., *, equal_nan: Any = ..., size: Any = ..., fill_value: Any = ..., sorted: Any = ...) -> Any:
    """The sorted distinct elements, or slices along an axis."""
def unique_all(x: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The distinct elements, their first positions, the inverse and the counts."""
def unique_counts(x: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The distinct elements and how often each occurs."""
def unique_inverse(x: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The distinct elements and the indices that rebuild the input from them."""
def unique_values(x: Any, *, size: Any = ..., fill_value: Any = ...) -> Any:
    """The sorted distinct elements."""
def unpackbits(a: Any, axis: Any = ..., count: Any = ..., bitorder: Any = ...) -> Any:
    """The bits of each byte as zeros and ones."""
def unravel_index(indices: Any, shape: Any) -> Any:
    """The coordinates of indices of a flattened array."""
unsignedinteger: Any
def unstack(x: Any, *, axis: Any = ...) -> Any:
    """The slices along an axis."""
def unwrap(p: Any, discont: Any = ..., axis: Any = ..., period: Any = ...) -> Any:
    """Phases without jumps of whole periods."""
def vander(x: Any, N: Any = ..., increasing: Any = ...) -> Any:
    """The matrix whose columns are powers of x."""
def var(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., ddof: Any = ..., keepdims: Any = ..., *, where: Any = ..., mean: Any = ..., correction: Any = ...) -> Any:
    """The variance along axes."""
def vdot(a: Any, b: Any, *, precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The dot product of the flattened arrays, a conjugated."""
def vecdot(x1: Any, x2: Any, *, axis: Any = ..., precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The dot product of vectors along an axis, x1 conjugated."""
def vecmat(x1: Any, x2: Any) -> Any:
    """Conjugated vectors times matrices; leading axes are batches."""
def vectorize(pyfunc: Any, *, excluded: Any = ..., signature: Any = ...) -> Any:
    """A function of small arrays as one that broadcasts, by vmap."""
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Splits an array along the first axis."""
def vstack(tup: Any, dtype: Any = ...) -> Any:
    """Arrays joined as rows, along the first axis."""
def where(condition: Any, x: Any = ..., y: Any = ..., *, size: Any = ..., fill_value: Any = ...) -> Any:
    """x where the condition is true, else y; with the condition alone, the indices at which it is true."""
def zeros(shape: Any, dtype: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """An array of zeros."""
def zeros_like(a: Any, dtype: Any = ..., shape: Any = ..., *, device: Any = ..., out_sharding: Any = ...) -> Any:
    """Zeros of the type of another array."""
