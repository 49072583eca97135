"""Types of capibara.jax.lax. Made by tools/python/make_stubs.py."""
from collections.abc import Callable
import numpy as np
from typing import overload
from capibara._stub_types import Prototype, Shape
from capibara.jax.typing import ArrayLike, DTypeLike
from capibara._types import AccuracyMode as AccuracyMode
from capibara._types import FftType as FftType
from capibara._types import GatherDimensionNumbers as GatherDimensionNumbers
from capibara._types import GatherScatterMode as GatherScatterMode
from capibara._types import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from capibara._types import RandomAlgorithm as RandomAlgorithm
from capibara._types import RoundingMethod as RoundingMethod
from capibara._types import ScatterDimensionNumbers as ScatterDimensionNumbers
from capibara._types import Tolerance as Tolerance
from capibara.jax.lax import linalg as linalg
from capibara.jax.lax._control import associative_scan as associative_scan
from capibara.jax.lax._control import composite as composite
from capibara.jax.lax._control import cond as cond
from capibara.jax.lax._control import custom_linear_solve as custom_linear_solve
from capibara.jax.lax._control import custom_root as custom_root
from capibara.jax.lax._control import fori_loop as fori_loop
from capibara.jax.lax._control import map as map
from capibara.jax.lax._control import optimization_barrier as optimization_barrier
from capibara.jax.lax._control import platform_dependent as platform_dependent
from capibara.jax.lax._control import scan as scan
from capibara.jax.lax._control import stop_gradient as stop_gradient
from capibara.jax.lax._control import switch as switch
from capibara.jax.lax._control import while_loop as while_loop
from capibara.jax.lax._exchange import precv as precv
from capibara.jax.lax._exchange import psend as psend
from capibara.jax.lax._reduce import reduce as reduce
from capibara.jax.lax._scaled_dot import scaled_dot as scaled_dot

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from capibara._core import Array, CatalogPrimitive
from capibara._stub_types import AxisName, PyTree
from capibara._types import ConvDimensionNumbers as ConvDimensionNumbers
from capibara._types import DotAlgorithmPreset as DotAlgorithmPreset
from capibara._types import Precision as Precision
from capibara.jax._mesh import PartitionSpec
from capibara.jax._sharding import Sharding

_T = TypeVar("_T")
PrecisionLike: TypeAlias = str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithmPreset | None
DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
ConvGeneralDilatedDimensionNumbers: TypeAlias = ConvDimensionNumbers | tuple[str, str, str] | None

def create_token(_: Any = None) -> Any: ...
def after_all(*operands: Any) -> Any: ...
def with_sharding_constraint(x: _T, shardings: PyTree) -> _T: ...
def psum(x: _T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T: ...
def pmean(x: _T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T: ...
def pmax(x: _T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T: ...
def pmin(x: _T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T: ...
def all_gather(
    x: _T, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None, axis: int = 0, tiled: bool = False,
    to: str = "varying"
) -> _T: ...
def all_to_all(
    x: _T, axis_name: AxisName, split_axis: int, concat_axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False
) -> _T: ...
def psum_scatter(
    x: _T, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False
) -> _T: ...
def ppermute(x: _T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> _T: ...
def pshuffle(x: _T, axis_name: AxisName, perm: Sequence[int]) -> _T: ...
def pswapaxes(x: _T, axis_name: AxisName, axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> _T: ...
def pbroadcast(x: _T, axis_name: AxisName, source: int) -> _T: ...
def abs(x: ArrayLike) -> Array:
    """The absolute value."""
abs_p: CatalogPrimitive
def acos(x: ArrayLike) -> Array:
    """The inverse cosine."""
acos_p: CatalogPrimitive
def acosh(x: ArrayLike) -> Array:
    """The inverse hyperbolic cosine."""
acosh_p: CatalogPrimitive
adam_update_p: CatalogPrimitive
def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y."""
add_any_p: CatalogPrimitive
add_p: CatalogPrimitive
addupdate_p: CatalogPrimitive
after_all_p: CatalogPrimitive
all_gather_invariant_p: CatalogPrimitive
all_gather_p: CatalogPrimitive
all_gather_reduced_p: CatalogPrimitive
all_to_all_p: CatalogPrimitive
and_p: CatalogPrimitive
def approx_max_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> list[Array]:
    """The k greatest elements, approximately on some devices."""
def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> list[Array]:
    """The k least elements, approximately on some devices."""
approx_top_k_p: CatalogPrimitive
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The first position of the maximum along an axis."""
argmax_p: CatalogPrimitive
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The first position of the minimum along an axis."""
argmin_p: CatalogPrimitive
def asin(x: ArrayLike) -> Array:
    """The inverse sine."""
asin_p: CatalogPrimitive
def asinh(x: ArrayLike) -> Array:
    """The inverse hyperbolic sine."""
asinh_p: CatalogPrimitive
def atan(x: ArrayLike) -> Array:
    """The inverse tangent."""
def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """atan(x / y) with the quadrant of the point (y, x)."""
atan2_p: CatalogPrimitive
atan_p: CatalogPrimitive
def atanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangent."""
atanh_p: CatalogPrimitive
def axis_index(axis_name: AxisName) -> Array:
    """The index of this member along named axes."""
axis_index_p: CatalogPrimitive
def axis_size(axis_name: AxisName) -> int:
    """The number of members of named axes."""
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """The matrix product over the last two dimensions; leading ones are batches."""
batch_norm_grad_p: CatalogPrimitive
batch_norm_inference_p: CatalogPrimitive
batch_norm_training_p: CatalogPrimitive
def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, scaled by exp(-|x|)."""
bessel_i0e_p: CatalogPrimitive
def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, scaled by exp(-|x|)."""
bessel_i1e_p: CatalogPrimitive
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function."""
def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of the elements as another dtype; a last axis is added or removed where the widths differ."""
bitcast_convert_type_p: CatalogPrimitive
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in both."""
def bitwise_not(x: ArrayLike) -> Array:
    """All bits inverted; the logical not of booleans."""
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in either."""
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in exactly one."""
def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Adds leading dimensions of these sizes."""
def broadcast_in_dim(operand: ArrayLike, shape: Shape, broadcast_dimensions: Sequence[int], *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Broadcasts to a shape; broadcast_dimensions gives the result's dimension of each operand dimension."""
broadcast_in_dim_p: CatalogPrimitive
def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcasts to the shape of another array."""
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all these shapes broadcast to."""
def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Adds leading dimensions of size 1 until there are `rank` of them."""
def broadcasted_iota(dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Each element's position along one dimension."""
call_p: CatalogPrimitive
def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cube root."""
cbrt_p: CatalogPrimitive
def ceil(x: ArrayLike) -> Array:
    """The least integer not below x."""
ceil_p: CatalogPrimitive
cholesky_p: CatalogPrimitive
cholesky_update_p: CatalogPrimitive
def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """x clamped to [min, max]."""
clamp_p: CatalogPrimitive
closed_call_p: CatalogPrimitive
def clz(x: ArrayLike) -> Array:
    """The number of leading zero bits."""
clz_p: CatalogPrimitive
def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merges adjacent dimensions into one."""
def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """x + iy."""
complex_p: CatalogPrimitive
composed_tangent_p: CatalogPrimitive
def concatenate(operands: ArrayLike | Sequence[ArrayLike], dimension: int) -> Array:
    """Joins arrays along a dimension."""
concatenate_p: CatalogPrimitive
cond_p: CatalogPrimitive
def conj(x: ArrayLike) -> Array:
    """The complex conjugate; real floats become complex."""
conj_p: CatalogPrimitive
def conv(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """A convolution with strides and padding."""
def conv_dimension_numbers(lhs_shape: Shape, rhs_shape: Shape, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers) -> ConvDimensionNumbers:
    """The positions of batch, feature and spatial dimensions in strings like NCHW."""
def conv_general_dilated(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers | None = None, feature_group_count: int = 1, batch_group_count: int = 1, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """A convolution with strides, padding, dilation and groups."""
def conv_general_dilated_local(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], filter_shape: Sequence[int], lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers | None = None, precision: PrecisionLike = None) -> Array:
    """A convolution with a separate kernel at every position."""
conv_general_dilated_p: CatalogPrimitive
def conv_general_dilated_patches(lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers | None = None, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The patches that a convolution reads, as features."""
def conv_general_permutations(dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The positions of batch, feature and spatial dimensions in the operands and the result."""
def conv_general_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers) -> tuple[int, ...]:
    """The shape of a convolution's result in another layout."""
def conv_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, strides: Sequence[int], pads: Sequence[tuple[int, int]], batch_group_count: int = 1) -> tuple[int, ...]:
    """The shape of a convolution's result."""
def conv_transpose(lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int], padding: str | Sequence[tuple[int, int]], rhs_dilation: Sequence[int] | None = None, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers | None = None, transpose_kernel: bool = False, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, use_consistent_padding: bool = False) -> Array:
    """A transposed convolution."""
def conv_with_general_padding(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """A convolution with strides, padding and dilation."""
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The elements converted to another dtype."""
convert_element_type_p: CatalogPrimitive
copy_p: CatalogPrimitive
def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The cosine."""
cos_p: CatalogPrimitive
def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine."""
cosh_p: CatalogPrimitive
create_token_p: CatalogPrimitive
cross_entropy_grad_p: CatalogPrimitive
cross_entropy_p: CatalogPrimitive
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative log(sum(exp)) along an axis."""
cumlogsumexp_p: CatalogPrimitive
def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative maximum along an axis."""
cummax_p: CatalogPrimitive
def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative minimum along an axis."""
cummin_p: CatalogPrimitive
def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative product along an axis."""
cumprod_p: CatalogPrimitive
def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative sum along an axis."""
cumsum_p: CatalogPrimitive
custom_call_p: CatalogPrimitive
custom_jvp_call_p: CatalogPrimitive
custom_lin_p: CatalogPrimitive
custom_linear_solve_p: CatalogPrimitive
custom_partitioning_p: CatalogPrimitive
custom_vjp_call_p: CatalogPrimitive
custom_vmap_call_p: CatalogPrimitive
debug_callback_p: CatalogPrimitive
def digamma(x: ArrayLike) -> Array:
    """The derivative of lgamma."""
digamma_p: CatalogPrimitive
def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y; integers round towards zero."""
div_p: CatalogPrimitive
def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The dot product of vectors or matrices, or a general one with dimension numbers."""
def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Contracts some dimensions of two arrays and batches over others."""
dot_general_p: CatalogPrimitive
def dtype(x: Any) -> np.dtype[Any]:
    """The dtype of an array, a number or a dtype."""
def dynamic_index_in_dim(operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True) -> Array:
    """One computed position along an axis."""
def dynamic_slice(operand: ArrayLike, start_indices: ArrayLike | Sequence[ArrayLike], slice_sizes: Sequence[int], *, allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """A slice of static size at a computed position, clamped to stay in bounds."""
def dynamic_slice_in_dim(operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True) -> Array:
    """dynamic_slice along one axis."""
dynamic_slice_p: CatalogPrimitive
def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True) -> Array:
    """The array with one computed position along an axis replaced."""
def dynamic_update_slice(operand: ArrayLike, update: ArrayLike, start_indices: ArrayLike | Sequence[ArrayLike], *, allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The array with a slice replaced at a computed position."""
def dynamic_update_slice_in_dim(operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True) -> Array:
    """dynamic_update_slice along one axis."""
dynamic_update_slice_p: CatalogPrimitive
eig_p: CatalogPrimitive
eigh_p: CatalogPrimitive
def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array of unspecified elements, which are zeros."""
empty2_p: CatalogPrimitive
empty_p: CatalogPrimitive
def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """x == y."""
eq_p: CatalogPrimitive
eq_to_p: CatalogPrimitive
def erf(x: ArrayLike) -> Array:
    """The error function."""
def erf_inv(x: ArrayLike) -> Array:
    """The inverse of the error function."""
erf_inv_p: CatalogPrimitive
erf_p: CatalogPrimitive
def erfc(x: ArrayLike) -> Array:
    """One minus the error function."""
erfc_p: CatalogPrimitive
def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """e to the power x."""
def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Two to the power x."""
exp2_p: CatalogPrimitive
exp_p: CatalogPrimitive
def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Inserts dimensions of size 1 at these positions of the result."""
def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """exp(x) - 1, accurate near zero."""
expm1_p: CatalogPrimitive
def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last axes."""
fft_p: CatalogPrimitive
flash_attention_grad_p: CatalogPrimitive
flash_attention_p: CatalogPrimitive
def floor(x: ArrayLike) -> Array:
    """The greatest integer not above x."""
floor_p: CatalogPrimitive
freeze_p: CatalogPrimitive
def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array filled with one number."""
def full_like(x: Prototype, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, sharding: Sharding | PartitionSpec | None = None) -> Array:
    """An array of the shape and dtype of x, filled with one number."""
def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Slices of a static size at computed positions."""
gather_p: CatalogPrimitive
def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """x >= y."""
ge_p: CatalogPrimitive
gelu_dropout_grad_p: CatalogPrimitive
gelu_dropout_p: CatalogPrimitive
geqp3_p: CatalogPrimitive
geqrf_p: CatalogPrimitive
get_p: CatalogPrimitive
grouped_matmul_p: CatalogPrimitive
grouped_outer_p: CatalogPrimitive
def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """x > y."""
gt_p: CatalogPrimitive
hessenberg_p: CatalogPrimitive
householder_product_p: CatalogPrimitive
def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function."""
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of igamma in a."""
igamma_grad_a_p: CatalogPrimitive
igamma_p: CatalogPrimitive
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised upper incomplete gamma function."""
igammac_p: CatalogPrimitive
def imag(x: ArrayLike) -> Array:
    """The imaginary part of complex numbers."""
imag_p: CatalogPrimitive
def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """One position along an axis."""
def index_take(src: ArrayLike, idxs: ArrayLike | Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The elements at vectors of positions along several axes."""
def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the power of a static integer."""
integer_pow_p: CatalogPrimitive
io_callback_p: CatalogPrimitive
def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1, ... size - 1."""
iota_2x32_shape_p: CatalogPrimitive
iota_p: CatalogPrimitive
def is_finite(x: ArrayLike) -> Array:
    """Whether each element is neither infinite nor NaN."""
is_finite_p: CatalogPrimitive
is_inf_p: CatalogPrimitive
is_neg_inf_p: CatalogPrimitive
is_pos_inf_p: CatalogPrimitive
jit_p: CatalogPrimitive
layer_norm_grad_p: CatalogPrimitive
layer_norm_p: CatalogPrimitive
def le(x: ArrayLike, y: ArrayLike) -> Array:
    """x <= y."""
le_p: CatalogPrimitive
le_to_p: CatalogPrimitive
def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function."""
lgamma_p: CatalogPrimitive
linear_recurrence_p: CatalogPrimitive
def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The natural logarithm."""
def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """log(1 + x), accurate near zero."""
log1p_p: CatalogPrimitive
log_p: CatalogPrimitive
def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / (1 + exp(-x))."""
logistic_p: CatalogPrimitive
def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """x < y."""
lt_p: CatalogPrimitive
lt_to_p: CatalogPrimitive
lu_p: CatalogPrimitive
lu_pivots_to_permutation_p: CatalogPrimitive
map_p: CatalogPrimitive
def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The greater; complex numbers are ordered by real, then imaginary part."""
max_p: CatalogPrimitive
def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The lesser; complex numbers are ordered by real, then imaginary part."""
min_p: CatalogPrimitive
moe_combine_grad_p: CatalogPrimitive
moe_combine_p: CatalogPrimitive
moe_dispatch_p: CatalogPrimitive
moe_routing_grad_p: CatalogPrimitive
moe_routing_p: CatalogPrimitive
def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y; in Python also in a given dtype."""
mul_p: CatalogPrimitive
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of the product of integers."""
mulhi_p: CatalogPrimitive
multiply_add_p: CatalogPrimitive
name_p: CatalogPrimitive
def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """x != y."""
ne_p: CatalogPrimitive
def neg(x: ArrayLike) -> Array:
    """-x."""
neg_p: CatalogPrimitive
new_ref_p: CatalogPrimitive
def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next floating-point number after the first operand in the direction of the second."""
nextafter_p: CatalogPrimitive
not_p: CatalogPrimitive
optimization_barrier_p: CatalogPrimitive
or_p: CatalogPrimitive
ormqr_p: CatalogPrimitive
def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Pads the ends of each dimension and between its elements; negative amounts remove elements."""
pad_p: CatalogPrimitive
def padtype_to_pads(in_shape: Shape, window_shape: Shape, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs of paddings that VALID, SAME or SAME_LOWER stand for."""
pbroadcast_p: CatalogPrimitive
def pcast(x: ArrayLike, axis_name: AxisName, *, to: str) -> Array:
    """The same value in a type that says otherwise along mesh axes: varying, unreduced or reduced."""
pmax_p: CatalogPrimitive
pmin_p: CatalogPrimitive
def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order m of digamma."""
polygamma_p: CatalogPrimitive
def population_count(x: ArrayLike) -> Array:
    """The number of bits that are set."""
population_count_p: CatalogPrimitive
def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power y; y may be of an integer dtype."""
pow_p: CatalogPrimitive
ppermute_p: CatalogPrimitive
preduced_p: CatalogPrimitive
process_all_gather_p: CatalogPrimitive
process_permute_p: CatalogPrimitive
process_reduce_p: CatalogPrimitive
psum_invariant_p: CatalogPrimitive
psum_p: CatalogPrimitive
pure_callback_p: CatalogPrimitive
pvary_p: CatalogPrimitive
qr_p: CatalogPrimitive
def ragged_all_to_all(operand: ArrayLike, output: str, input_offsets: ArrayLike, send_sizes: ArrayLike, output_offsets: ArrayLike, recv_sizes: ArrayLike, *, axis_name: AxisName, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Array:
    """The output with the slices of other members' operands written into it; their sizes are values."""
def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """A matrix product in which each group of rows of lhs has its own matrix of rhs."""
def ragged_dot_general(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """A general dot product whose lhs is split into groups along one dimension."""
ragged_dot_general_p: CatalogPrimitive
random_bits_p: CatalogPrimitive
random_clone_p: CatalogPrimitive
random_fold_in_p: CatalogPrimitive
def random_gamma_grad(*args: ArrayLike) -> Array:
    """The derivative of a gamma draw x in its parameter a."""
random_gamma_grad_p: CatalogPrimitive
random_gamma_p: CatalogPrimitive
random_seed_p: CatalogPrimitive
random_split_p: CatalogPrimitive
random_unwrap_p: CatalogPrimitive
random_wrap_p: CatalogPrimitive
def real(x: ArrayLike) -> Array:
    """The real part of complex numbers."""
real_p: CatalogPrimitive
def reciprocal(x: ArrayLike) -> Array:
    """1 / x."""
def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bits set everywhere along axes."""
reduce_and_p: CatalogPrimitive
def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The maximum over axes."""
reduce_max_p: CatalogPrimitive
def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The minimum over axes."""
reduce_min_p: CatalogPrimitive
def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bits set anywhere along axes."""
reduce_or_p: CatalogPrimitive
reduce_p: CatalogPrimitive
def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds to a floating format with fewer bits, keeping the dtype."""
reduce_precision_p: CatalogPrimitive
def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over axes."""
reduce_prod_p: CatalogPrimitive
reduce_scatter_p: CatalogPrimitive
def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The sum over axes."""
reduce_sum_p: CatalogPrimitive
def reduce_window(operand: PyTree, init_value: PyTree, computation: Callable[..., Any], window_dimensions: Shape, window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = 'VALID', base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> PyTree:
    """Combines the elements of each window by an associative function."""
reduce_window_max_p: CatalogPrimitive
reduce_window_min_p: CatalogPrimitive
reduce_window_p: CatalogPrimitive
def reduce_window_shape_tuple(operand_shape: Shape, window_dimensions: Shape, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]], base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """The shape of what reduce_window returns."""
reduce_window_sum_p: CatalogPrimitive
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bits set an odd number of times along axes."""
reduce_xor_p: CatalogPrimitive
reduced_vary_cast_p_p: CatalogPrimitive
regularized_incomplete_beta_p: CatalogPrimitive
def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of the division that rounds towards zero: it has the sign of x."""
rem_p: CatalogPrimitive
remat_p: CatalogPrimitive
def reshape(operand: ArrayLike, new_sizes: Shape, dimensions: Sequence[int] | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The same elements in row-major order in another shape."""
reshape_p: CatalogPrimitive
reshard_p: CatalogPrimitive
def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverses the elements along dimensions."""
rev_p: CatalogPrimitive
rms_norm_grad_p: CatalogPrimitive
rms_norm_p: CatalogPrimitive
def rng_bit_generator(key: ArrayLike, shape: Shape, dtype: DTypeLike = 'uint32', algorithm: str | RandomAlgorithm = 'rng_default', *, out_sharding: Sharding | PartitionSpec | None = None) -> tuple[Array, Array]:
    """A new state and random bits from the backend's generator."""
rng_bit_generator_p: CatalogPrimitive
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Uniform numbers from the backend's own state; programs should use jax.random."""
rng_uniform_p: CatalogPrimitive
def round(x: ArrayLike, rounding_method: RoundingMethod | str = 'away_from_zero') -> Array:
    """The nearest integer; halves go away from zero, or to the even one."""
round_p: CatalogPrimitive
def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """1 / sqrt(x)."""
rsqrt_p: CatalogPrimitive
scan_p: CatalogPrimitive
def scatter(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The array with slices at computed positions replaced."""
def scatter_add(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The array with updates added at computed positions."""
scatter_add_p: CatalogPrimitive
def scatter_apply(operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[..., Any], dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers, *, update_shape: Shape = (), indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The array with a function applied at computed positions."""
def scatter_max(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The array with the maximum of its elements and updates at computed positions."""
scatter_max_p: CatalogPrimitive
def scatter_min(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The array with the minimum of its elements and updates at computed positions."""
scatter_min_p: CatalogPrimitive
def scatter_mul(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The array multiplied by updates at computed positions."""
scatter_mul_p: CatalogPrimitive
scatter_p: CatalogPrimitive
def scatter_sub(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The array with updates subtracted at computed positions."""
scatter_sub_p: CatalogPrimitive
schur_p: CatalogPrimitive
def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """on_true where pred holds, on_false elsewhere."""
select_and_gather_add_p: CatalogPrimitive
select_and_scatter_add_p: CatalogPrimitive
select_and_scatter_p: CatalogPrimitive
def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Selects each element from the case whose number `which` holds."""
select_n_p: CatalogPrimitive
selective_scan_grad_p: CatalogPrimitive
selective_scan_p: CatalogPrimitive
def shape_as_value(shape: Shape) -> Array:
    """A shape as an array of integers."""
shard_map_p: CatalogPrimitive
sharding_constraint_p: CatalogPrimitive
def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x << y."""
shift_left_p: CatalogPrimitive
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y, filled with the sign bit."""
shift_right_arithmetic_p: CatalogPrimitive
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y, filled with zeros."""
shift_right_logical_p: CatalogPrimitive
def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1; x / |x| of complex numbers."""
sign_p: CatalogPrimitive
def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The sine."""
sin_p: CatalogPrimitive
def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine."""
sinh_p: CatalogPrimitive
def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> Array:
    """A rectangular part of an array, with static bounds."""
def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Array:
    """A slice along one axis; negative bounds count from the end."""
slice_p: CatalogPrimitive
softmax_grad_p: CatalogPrimitive
softmax_p: CatalogPrimitive
@overload
def sort(operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...
@overload
def sort(operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> tuple[Array, ...]:
    """Sorts along a dimension; of several arrays the first num_keys decide, and all are reordered."""
sort_general_p: CatalogPrimitive
def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """Sorts keys along a dimension and reorders values with them."""
sort_p: CatalogPrimitive
sparse_attention_grad_p: CatalogPrimitive
sparse_attention_p: CatalogPrimitive
spiking_neuron_grad_p: CatalogPrimitive
spiking_neuron_p: CatalogPrimitive
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Splits an array into parts of these sizes along an axis."""
split_p: CatalogPrimitive
def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The square root."""
sqrt_p: CatalogPrimitive
def square(x: ArrayLike) -> Array:
    """x * x."""
square_p: CatalogPrimitive
def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Removes dimensions of size 1."""
squeeze_p: CatalogPrimitive
ssd_grad_p: CatalogPrimitive
ssd_p: CatalogPrimitive
def stack(operands: ArrayLike | Sequence[ArrayLike], axis: int = 0) -> Array:
    """Joins arrays of one shape along a new axis."""
stack_p: CatalogPrimitive
def stage(x: ArrayLike, /) -> Array:
    """The value as an array of the current trace."""
stop_gradient_p: CatalogPrimitive
def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y."""
sub_p: CatalogPrimitive
svd_p: CatalogPrimitive
swap_p: CatalogPrimitive
symmetric_product_p: CatalogPrimitive
def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The tangent."""
tan_p: CatalogPrimitive
def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """The hyperbolic tangent."""
tanh_p: CatalogPrimitive
threefry2x32_p: CatalogPrimitive
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeats the array along each dimension."""
tile_p: CatalogPrimitive
def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """The k greatest elements along an axis and their positions."""
top_k_p: CatalogPrimitive
def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Reorders the dimensions."""
transpose_p: CatalogPrimitive
triangular_solve_p: CatalogPrimitive
tridiagonal_p: CatalogPrimitive
tridiagonal_solve_p: CatalogPrimitive
unreduced_psum_p: CatalogPrimitive
unreduced_reduce_scatter_p: CatalogPrimitive
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis."""
unstack_p: CatalogPrimitive
vary_unreduced_cast_p_p: CatalogPrimitive
vq_encode_p: CatalogPrimitive
while_p: CatalogPrimitive
xor_p: CatalogPrimitive
def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function."""
zeta_p: CatalogPrimitive
