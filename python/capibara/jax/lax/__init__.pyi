"""Types of capibara.jax.lax. Made by tools/python/make_stubs.py."""
from typing import Any

class AccuracyMode(Any): ...
class ConvDimensionNumbers(Any): ...
def ConvGeneralDilatedDimensionNumbers(*args: Any, **kwargs: Any) -> Any:
    """"""
class DotAlgorithmPreset(Any): ...
DotDimensionNumbers: Any
class FftType(Any): ...
class GatherDimensionNumbers(Any): ...
class GatherScatterMode(Any): ...
class Precision(Any): ...
def PrecisionLike(*args: Any, **kwargs: Any) -> Any:
    """"""
class RaggedDotDimensionNumbers(Any): ...
class RandomAlgorithm(Any): ...
class RoundingMethod(Any): ...
class ScatterDimensionNumbers(Any): ...
class Tolerance(Any): ...
def abs(x: Any) -> Any:
    """The absolute value."""
abs_p: Any
def acos(x: Any) -> Any:
    """The inverse cosine."""
acos_p: Any
def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine."""
acosh_p: Any
def add(x: Any, y: Any) -> Any:
    """x + y."""
add_any_p: Any
add_p: Any
addupdate_p: Any
def after_all(*operands: Any) -> Any:
    """A token that is ready when all the given ones are."""
after_all_p: Any
def all_gather(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
all_gather_p: Any
def all_to_all(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
all_to_all_p: Any
and_p: Any
def approx_max_k(operand: Any, k: Any, reduction_dimension: Any = ..., recall_target: Any = ..., reduction_input_size_override: Any = ..., aggregate_to_topk: Any = ...) -> Any:
    """The k greatest elements, approximately on some devices."""
def approx_min_k(operand: Any, k: Any, reduction_dimension: Any = ..., recall_target: Any = ..., reduction_input_size_override: Any = ..., aggregate_to_topk: Any = ...) -> Any:
    """The k least elements, approximately on some devices."""
approx_top_k_p: Any
def argmax(operand: Any, axis: Any, index_dtype: Any) -> Any:
    """The first position of the maximum along an axis."""
argmax_p: Any
def argmin(operand: Any, axis: Any, index_dtype: Any) -> Any:
    """The first position of the minimum along an axis."""
argmin_p: Any
def asin(x: Any) -> Any:
    """The inverse sine."""
asin_p: Any
def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine."""
asinh_p: Any
def associative_scan(fn: Any, elems: Any, reverse: Any = ..., axis: Any = ..., *, tpu_optimized: Any = ...) -> Any:
    """`tpu_optimized` only states a wish: the algorithm's depth is logarithmic either way."""
def atan(x: Any) -> Any:
    """The inverse tangent."""
def atan2(x: Any, y: Any) -> Any:
    """atan(x / y) with the quadrant of the point (y, x)."""
atan2_p: Any
atan_p: Any
def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
atanh_p: Any
def axis_index(axis_name: Any) -> Any:
    """The index of this member along named axes."""
axis_index_p: Any
def axis_size(axis_name: Any) -> Any:
    """The number of members of named axes."""
def batch_matmul(lhs: Any, rhs: Any, precision: Any = ...) -> Any:
    """The matrix product over the last two dimensions; leading ones are batches."""
batch_norm_grad_p: Any
batch_norm_inference_p: Any
batch_norm_training_p: Any
def bessel_i0e(x: Any) -> Any:
    """The modified Bessel function of order 0, scaled by exp(-|x|)."""
bessel_i0e_p: Any
def bessel_i1e(x: Any) -> Any:
    """The modified Bessel function of order 1, scaled by exp(-|x|)."""
bessel_i1e_p: Any
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function."""
def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits of the elements as another dtype; a last axis is added or removed where the widths differ."""
bitcast_convert_type_p: Any
def bitwise_and(x: Any, y: Any) -> Any:
    """The bits set in both."""
def bitwise_not(x: Any) -> Any:
    """All bits inverted; the logical not of booleans."""
def bitwise_or(x: Any, y: Any) -> Any:
    """The bits set in either."""
def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits set in exactly one."""
def broadcast(operand: Any, sizes: Any, *, out_sharding: Any = ...) -> Any:
    """Adds leading dimensions of these sizes."""
def broadcast_in_dim(operand: Any, shape: Any, broadcast_dimensions: Any, *, out_sharding: Any = ...) -> Any:
    """Broadcasts to a shape; broadcast_dimensions gives the result's dimension of each operand dimension."""
broadcast_in_dim_p: Any
def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """Broadcasts to the shape of another array."""
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that all these shapes broadcast to."""
def broadcast_to_rank(x: Any, rank: Any) -> Any:
    """Adds leading dimensions of size 1 until there are `rank` of them."""
def broadcasted_iota(dtype: Any, shape: Any, dimension: Any, *, out_sharding: Any = ...) -> Any:
    """Each element's position along one dimension."""
call_p: Any
def cbrt(x: Any, *, accuracy: Any = ...) -> Any:
    """The cube root."""
cbrt_p: Any
def ceil(x: Any) -> Any:
    """The least integer not below x."""
ceil_p: Any
cholesky_p: Any
cholesky_update_p: Any
def clamp(min: Any, x: Any, max: Any) -> Any:
    """x clamped to [min, max]."""
clamp_p: Any
closed_call_p: Any
def clz(x: Any) -> Any:
    """The number of leading zero bits."""
clz_p: Any
def collapse(operand: Any, start_dimension: Any, stop_dimension: Any = ...) -> Any:
    """Merges adjacent dimensions into one."""
def complex(x: Any, y: Any) -> Any:
    """x + iy."""
complex_p: Any
def composite(decomposition: Any, name: Any, version: Any = ...) -> Any:
    """A function under a name that a back end may know; here it is its decomposition."""
def concatenate(operands: Any, dimension: Any) -> Any:
    """Joins arrays along a dimension."""
concatenate_p: Any
def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = ..., linear: Any = ...) -> Any:
    """One of two functions of the operands, as a predicate says; in the old form an operand stands before each function."""
cond_p: Any
def conj(x: Any) -> Any:
    """The complex conjugate; real floats become complex."""
conj_p: Any
def conv(lhs: Any, rhs: Any, window_strides: Any, padding: Any, precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """A convolution with strides and padding."""
def conv_dimension_numbers(lhs_shape: Any, rhs_shape: Any, dimension_numbers: Any) -> Any:
    """The positions of batch, feature and spatial dimensions in strings like NCHW."""
def conv_general_dilated(lhs: Any, rhs: Any, window_strides: Any, padding: Any, lhs_dilation: Any = ..., rhs_dilation: Any = ..., dimension_numbers: Any = ..., feature_group_count: Any = ..., batch_group_count: Any = ..., precision: Any = ..., preferred_element_type: Any = ..., out_sharding: Any = ...) -> Any:
    """A convolution with strides, padding, dilation and groups."""
def conv_general_dilated_local(lhs: Any, rhs: Any, window_strides: Any, padding: Any, filter_shape: Any, lhs_dilation: Any = ..., rhs_dilation: Any = ..., dimension_numbers: Any = ..., precision: Any = ...) -> Any:
    """A convolution with a separate kernel at every position."""
conv_general_dilated_p: Any
def conv_general_dilated_patches(lhs: Any, filter_shape: Any, window_strides: Any, padding: Any, lhs_dilation: Any = ..., rhs_dilation: Any = ..., dimension_numbers: Any = ..., precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """The patches that a convolution reads, as features."""
def conv_general_permutations(dimension_numbers: Any) -> Any:
    """The positions of batch, feature and spatial dimensions in the operands and the result."""
def conv_general_shape_tuple(lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any) -> Any:
    """The shape of a convolution's result in another layout."""
def conv_shape_tuple(lhs_shape: Any, rhs_shape: Any, strides: Any, pads: Any, batch_group_count: Any = ...) -> Any:
    """The shape of a convolution's result."""
def conv_transpose(lhs: Any, rhs: Any, strides: Any, padding: Any, rhs_dilation: Any = ..., dimension_numbers: Any = ..., transpose_kernel: Any = ..., precision: Any = ..., preferred_element_type: Any = ..., use_consistent_padding: Any = ...) -> Any:
    """A transposed convolution."""
def conv_with_general_padding(lhs: Any, rhs: Any, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any, precision: Any = ..., preferred_element_type: Any = ...) -> Any:
    """A convolution with strides, padding and dilation."""
def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """The elements converted to another dtype."""
convert_element_type_p: Any
copy_p: Any
def cos(x: Any, *, accuracy: Any = ...) -> Any:
    """The cosine."""
cos_p: Any
def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
cosh_p: Any
def create_token(_: Any = ...) -> Any:
    """A token: a value that only orders side effects."""
create_token_p: Any
def cumlogsumexp(operand: Any, axis: Any = ..., reverse: Any = ...) -> Any:
    """The cumulative log(sum(exp)) along an axis."""
cumlogsumexp_p: Any
def cummax(operand: Any, axis: Any = ..., reverse: Any = ...) -> Any:
    """The cumulative maximum along an axis."""
cummax_p: Any
def cummin(operand: Any, axis: Any = ..., reverse: Any = ...) -> Any:
    """The cumulative minimum along an axis."""
cummin_p: Any
def cumprod(operand: Any, axis: Any = ..., reverse: Any = ...) -> Any:
    """The cumulative product along an axis."""
cumprod_p: Any
def cumsum(operand: Any, axis: Any = ..., reverse: Any = ...) -> Any:
    """The cumulative sum along an axis."""
cumsum_p: Any
custom_call_p: Any
custom_jvp_call_p: Any
custom_lin_p: Any
def custom_linear_solve(matvec: Any, b: Any, solve: Any, transpose_solve: Any = ..., symmetric: Any = ..., has_aux: Any = ...) -> Any:
    """The solution of a linear system whose derivative comes from the system."""
custom_linear_solve_p: Any
def custom_root(f: Any, initial_guess: Any, solve: Any, tangent_solve: Any, has_aux: Any = ...) -> Any:
    """A root of f whose derivative comes from the equation it satisfies."""
custom_vjp_call_p: Any
custom_vmap_call_p: Any
debug_callback_p: Any
def digamma(x: Any) -> Any:
    """The derivative of lgamma."""
digamma_p: Any
def div(x: Any, y: Any) -> Any:
    """x / y; integers round towards zero."""
div_p: Any
def dot(lhs: Any, rhs: Any, *, dimension_numbers: Any = ..., precision: Any = ..., preferred_element_type: Any = ..., out_sharding: Any = ...) -> Any:
    """The dot product of vectors or matrices, or a general one with dimension numbers."""
def dot_general(lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = ..., preferred_element_type: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Contracts some dimensions of two arrays and batches over others."""
dot_general_p: Any
def dtype(x: Any) -> Any:
    """The dtype of an array, a number or a dtype."""
def dynamic_index_in_dim(operand: Any, index: Any, axis: Any = ..., keepdims: Any = ..., *, allow_negative_indices: Any = ...) -> Any:
    """One computed position along an axis."""
def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Any, *, allow_negative_indices: Any = ...) -> Any:
    """A slice of static size at a computed position, clamped to stay in bounds."""
def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: Any, axis: Any = ..., *, allow_negative_indices: Any = ...) -> Any:
    """dynamic_slice along one axis."""
dynamic_slice_p: Any
def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: Any, *, allow_negative_indices: Any = ...) -> Any:
    """The array with one computed position along an axis replaced."""
def dynamic_update_slice(operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: Any = ...) -> Any:
    """The array with a slice replaced at a computed position."""
def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: Any, *, allow_negative_indices: Any = ...) -> Any:
    """dynamic_update_slice along one axis."""
dynamic_update_slice_p: Any
eig_p: Any
eigh_p: Any
def empty(shape: Any, dtype: Any, *, out_sharding: Any = ...) -> Any:
    """An array of unspecified elements, which are zeros."""
empty2_p: Any
empty_p: Any
def eq(x: Any, y: Any) -> Any:
    """x == y."""
eq_p: Any
eq_to_p: Any
def erf(x: Any) -> Any:
    """The error function."""
def erf_inv(x: Any) -> Any:
    """The inverse of the error function."""
erf_inv_p: Any
erf_p: Any
def erfc(x: Any) -> Any:
    """One minus the error function."""
erfc_p: Any
def exp(x: Any, *, accuracy: Any = ...) -> Any:
    """e to the power x."""
def exp2(x: Any, *, accuracy: Any = ...) -> Any:
    """Two to the power x."""
exp2_p: Any
exp_p: Any
def expand_dims(array: Any, dimensions: Any) -> Any:
    """Inserts dimensions of size 1 at these positions of the result."""
def expm1(x: Any, *, accuracy: Any = ...) -> Any:
    """exp(x) - 1, accurate near zero."""
expm1_p: Any
def fft(x: Any, fft_type: Any, fft_lengths: Any) -> Any:
    """The discrete Fourier transform over the last axes."""
fft_p: Any
def floor(x: Any) -> Any:
    """The greatest integer not above x."""
floor_p: Any
def fori_loop(lower: Any, upper: Any, body_fun: Any, init_val: Any, *, unroll: Any = ...) -> Any:
    """body_fun(i, state) for i from lower to upper; a scan where the bounds are known, else a while loop."""
freeze_p: Any
def full(shape: Any, fill_value: Any, dtype: Any = ..., *, sharding: Any = ...) -> Any:
    """An array filled with one number."""
def full_like(x: Any, fill_value: Any, dtype: Any = ..., shape: Any = ..., sharding: Any = ...) -> Any:
    """An array of the shape and dtype of x, filled with one number."""
def gather(operand: Any, start_indices: Any, dimension_numbers: Any, slice_sizes: Any, *, unique_indices: Any = ..., indices_are_sorted: Any = ..., mode: Any = ..., fill_value: Any = ...) -> Any:
    """Slices of a static size at computed positions."""
gather_p: Any
def ge(x: Any, y: Any) -> Any:
    """x >= y."""
ge_p: Any
geqp3_p: Any
geqrf_p: Any
get_p: Any
def gt(x: Any, y: Any) -> Any:
    """x > y."""
gt_p: Any
hessenberg_p: Any
householder_product_p: Any
def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function."""
def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of igamma in a."""
igamma_grad_a_p: Any
igamma_p: Any
def igammac(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function."""
igammac_p: Any
def imag(x: Any) -> Any:
    """The imaginary part of complex numbers."""
imag_p: Any
def index_in_dim(operand: Any, index: Any, axis: Any = ..., keepdims: Any = ...) -> Any:
    """One position along an axis."""
def index_take(src: Any, idxs: Any, axes: Any) -> Any:
    """The elements at vectors of positions along several axes."""
def integer_pow(x: Any, y: Any) -> Any:
    """x to the power of a static integer."""
integer_pow_p: Any
io_callback_p: Any
def iota(dtype: Any, size: Any) -> Any:
    """0, 1, ... size - 1."""
iota_2x32_shape_p: Any
iota_p: Any
def is_finite(x: Any) -> Any:
    """Whether each element is neither infinite nor NaN."""
is_finite_p: Any
is_inf_p: Any
is_neg_inf_p: Any
is_pos_inf_p: Any
jit_p: Any
def le(x: Any, y: Any) -> Any:
    """x <= y."""
le_p: Any
le_to_p: Any
def lgamma(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function."""
lgamma_p: Any
from . import linalg as linalg
def log(x: Any, *, accuracy: Any = ...) -> Any:
    """The natural logarithm."""
def log1p(x: Any, *, accuracy: Any = ...) -> Any:
    """log(1 + x), accurate near zero."""
log1p_p: Any
log_p: Any
def logistic(x: Any, *, accuracy: Any = ...) -> Any:
    """1 / (1 + exp(-x))."""
logistic_p: Any
def lt(x: Any, y: Any) -> Any:
    """x < y."""
lt_p: Any
lt_to_p: Any
lu_p: Any
lu_pivots_to_permutation_p: Any
def map(f: Any, xs: Any, *, batch_size: Any = ...) -> Any:
    """f on every slice of the leading axis, one after the other or in batches."""
map_p: Any
def max(x: Any, y: Any) -> Any:
    """The greater; complex numbers are ordered by real, then imaginary part."""
max_p: Any
def min(x: Any, y: Any) -> Any:
    """The lesser; complex numbers are ordered by real, then imaginary part."""
min_p: Any
def mul(x: Any, y: Any, *, out_dtype: Any = ...) -> Any:
    """x * y; in Python also in a given dtype."""
mul_p: Any
def mulhi(x: Any, y: Any) -> Any:
    """The upper half of the bits of the product of integers."""
mulhi_p: Any
multiply_add_p: Any
name_p: Any
def ne(x: Any, y: Any) -> Any:
    """x != y."""
ne_p: Any
def neg(x: Any) -> Any:
    """-x."""
neg_p: Any
new_ref_p: Any
def nextafter(x1: Any, x2: Any) -> Any:
    """The next floating-point number after the first operand in the direction of the second."""
nextafter_p: Any
not_p: Any
def optimization_barrier(operand: Any) -> Any:
    """The same values, kept apart by the compiler."""
optimization_barrier_p: Any
or_p: Any
ormqr_p: Any
def pad(operand: Any, padding_value: Any, padding_config: Any) -> Any:
    """Pads the ends of each dimension and between its elements; negative amounts remove elements."""
pad_p: Any
def padtype_to_pads(in_shape: Any, window_shape: Any, window_strides: Any, padding: Any) -> Any:
    """The pairs of paddings that VALID, SAME or SAME_LOWER stand for."""
def pbroadcast(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
def platform_dependent(*args: Any, default: Any = ..., **per_platform: Any) -> Any:
    """The function for the platform that a program is lowered for: 'cpu', 'cuda', 'rocm', 'tpu', or 'gpu' for both of the middle."""
def pmax(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
pmax_p: Any
def pmean(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
def pmin(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
pmin_p: Any
def polygamma(m: Any, x: Any) -> Any:
    """The derivative of order m of digamma."""
polygamma_p: Any
def population_count(x: Any) -> Any:
    """The number of bits that are set."""
population_count_p: Any
def pow(x: Any, y: Any) -> Any:
    """x to the power y; y may be of an integer dtype."""
pow_p: Any
def ppermute(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
ppermute_p: Any
def pshuffle(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
def psum(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
psum_p: Any
def psum_scatter(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
def pswapaxes(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
    """"""
pure_callback_p: Any
qr_p: Any
def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any, precision: Any = ..., preferred_element_type: Any = ..., group_offset: Any = ..., out_sharding: Any = ...) -> Any:
    """A matrix product in which each group of rows of lhs has its own matrix of rhs."""
def ragged_dot_general(lhs: Any, rhs: Any, group_sizes: Any, ragged_dot_dimension_numbers: Any, precision: Any = ..., preferred_element_type: Any = ..., group_offset: Any = ..., out_sharding: Any = ...) -> Any:
    """A general dot product whose lhs is split into groups along one dimension."""
ragged_dot_general_p: Any
random_bits_p: Any
random_clone_p: Any
random_fold_in_p: Any
def random_gamma_grad(*args: Any) -> Any:
    """The derivative of a gamma draw x in its parameter a."""
random_gamma_grad_p: Any
random_gamma_p: Any
random_seed_p: Any
random_split_p: Any
random_unwrap_p: Any
random_wrap_p: Any
def real(x: Any) -> Any:
    """The real part of complex numbers."""
real_p: Any
def reciprocal(x: Any) -> Any:
    """1 / x."""
def reduce(operands: Any, init_values: Any, computation: Any, dimensions: Any, out_sharding: Any = ...) -> Any:
    """Combines elements along dimensions by an associative function of two operands' elements."""
def reduce_and(operand: Any, axes: Any) -> Any:
    """The bits set everywhere along axes."""
reduce_and_p: Any
def reduce_max(operand: Any, axes: Any) -> Any:
    """The maximum over axes."""
reduce_max_p: Any
def reduce_min(operand: Any, axes: Any) -> Any:
    """The minimum over axes."""
reduce_min_p: Any
def reduce_or(operand: Any, axes: Any) -> Any:
    """The bits set anywhere along axes."""
reduce_or_p: Any
reduce_p: Any
def reduce_precision(operand: Any, exponent_bits: Any, mantissa_bits: Any) -> Any:
    """Rounds to a floating format with fewer bits, keeping the dtype."""
reduce_precision_p: Any
def reduce_prod(operand: Any, axes: Any) -> Any:
    """The product over axes."""
reduce_prod_p: Any
reduce_scatter_p: Any
def reduce_sum(operand: Any, axes: Any, *, out_sharding: Any = ...) -> Any:
    """The sum over axes."""
reduce_sum_p: Any
def reduce_window(operand: Any, init_value: Any, computation: Any, window_dimensions: Any, window_strides: Any = ..., padding: Any = ..., base_dilation: Any = ..., window_dilation: Any = ...) -> Any:
    """Combines the elements of each window by an associative function."""
reduce_window_max_p: Any
reduce_window_min_p: Any
reduce_window_p: Any
def reduce_window_shape_tuple(operand_shape: Any, window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any = ..., window_dilation: Any = ...) -> Any:
    """The shape of what reduce_window returns."""
reduce_window_sum_p: Any
def reduce_xor(operand: Any, axes: Any) -> Any:
    """The bits set an odd number of times along axes."""
reduce_xor_p: Any
regularized_incomplete_beta_p: Any
def rem(x: Any, y: Any) -> Any:
    """The remainder of the division that rounds towards zero: it has the sign of x."""
rem_p: Any
remat_p: Any
def reshape(operand: Any, new_sizes: Any, dimensions: Any = ..., *, out_sharding: Any = ...) -> Any:
    """The same elements in row-major order in another shape."""
reshape_p: Any
def rev(operand: Any, dimensions: Any) -> Any:
    """Reverses the elements along dimensions."""
rev_p: Any
def rng_bit_generator(key: Any, shape: Any, dtype: Any = ..., algorithm: Any = ..., *, out_sharding: Any = ...) -> Any:
    """A new state and random bits from the backend's generator."""
rng_bit_generator_p: Any
def rng_uniform(a: Any, b: Any, shape: Any) -> Any:
    """Uniform numbers from the backend's own state; programs should use jax.random."""
rng_uniform_p: Any
def round(x: Any, rounding_method: Any = ...) -> Any:
    """The nearest integer; halves go away from zero, or to the even one."""
round_p: Any
def rsqrt(x: Any, *, accuracy: Any = ...) -> Any:
    """1 / sqrt(x)."""
rsqrt_p: Any
def scan(f: Any, init: Any, xs: Any = ..., length: Any = ..., reverse: Any = ..., unroll: Any = ..., _split_transpose: Any = ...) -> Any:
    """Runs f over the leading axis of xs, carrying a state; returns the last state and the stacked outputs."""
scan_p: Any
def scatter(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, *, indices_are_sorted: Any = ..., unique_indices: Any = ..., mode: Any = ...) -> Any:
    """The array with slices at computed positions replaced."""
def scatter_add(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, *, indices_are_sorted: Any = ..., unique_indices: Any = ..., mode: Any = ...) -> Any:
    """The array with updates added at computed positions."""
scatter_add_p: Any
def scatter_apply(operand: Any, scatter_indices: Any, func: Any, dimension_numbers: Any, *, update_shape: Any = ..., indices_are_sorted: Any = ..., unique_indices: Any = ..., mode: Any = ...) -> Any:
    """The array with a function applied at computed positions."""
def scatter_max(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, *, indices_are_sorted: Any = ..., unique_indices: Any = ..., mode: Any = ...) -> Any:
    """The array with the maximum of its elements and updates at computed positions."""
scatter_max_p: Any
def scatter_min(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, *, indices_are_sorted: Any = ..., unique_indices: Any = ..., mode: Any = ...) -> Any:
    """The array with the minimum of its elements and updates at computed positions."""
scatter_min_p: Any
def scatter_mul(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, *, indices_are_sorted: Any = ..., unique_indices: Any = ..., mode: Any = ...) -> Any:
    """The array multiplied by updates at computed positions."""
scatter_mul_p: Any
scatter_p: Any
def scatter_sub(operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any, *, indices_are_sorted: Any = ..., unique_indices: Any = ..., mode: Any = ...) -> Any:
    """The array with updates subtracted at computed positions."""
scatter_sub_p: Any
schur_p: Any
def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """on_true where pred holds, on_false elsewhere."""
select_and_gather_add_p: Any
select_and_scatter_add_p: Any
select_and_scatter_p: Any
def select_n(which: Any, *cases: Any) -> Any:
    """Selects each element from the case whose number `which` holds."""
select_n_p: Any
def shape_as_value(shape: Any) -> Any:
    """A shape as an array of integers."""
sharding_constraint_p: Any
def shift_left(x: Any, y: Any) -> Any:
    """x << y."""
shift_left_p: Any
def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """x >> y, filled with the sign bit."""
shift_right_arithmetic_p: Any
def shift_right_logical(x: Any, y: Any) -> Any:
    """x >> y, filled with zeros."""
shift_right_logical_p: Any
def sign(x: Any) -> Any:
    """-1, 0 or 1; x / |x| of complex numbers."""
sign_p: Any
def sin(x: Any, *, accuracy: Any = ...) -> Any:
    """The sine."""
sin_p: Any
def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
sinh_p: Any
def slice(operand: Any, start_indices: Any, limit_indices: Any, strides: Any = ...) -> Any:
    """A rectangular part of an array, with static bounds."""
def slice_in_dim(operand: Any, start_index: Any, limit_index: Any, stride: Any = ..., axis: Any = ...) -> Any:
    """A slice along one axis; negative bounds count from the end."""
slice_p: Any
def sort(operand: Any, dimension: Any = ..., is_stable: Any = ..., num_keys: Any = ...) -> Any:
    """Sorts along a dimension; of several arrays the first num_keys decide, and all are reordered."""
sort_general_p: Any
def sort_key_val(keys: Any, values: Any, dimension: Any = ..., is_stable: Any = ...) -> Any:
    """Sorts keys along a dimension and reorders values with them."""
sort_p: Any
def split(operand: Any, sizes: Any, axis: Any = ...) -> Any:
    """Splits an array into parts of these sizes along an axis."""
split_p: Any
def sqrt(x: Any, *, accuracy: Any = ...) -> Any:
    """The square root."""
sqrt_p: Any
def square(x: Any) -> Any:
    """x * x."""
square_p: Any
def squeeze(array: Any, dimensions: Any) -> Any:
    """Removes dimensions of size 1."""
squeeze_p: Any
def stack(operands: Any, axis: Any = ...) -> Any:
    """Joins arrays of one shape along a new axis."""
stack_p: Any
def stage(x: Any) -> Any:
    """The value as an array of the current trace."""
def stop_gradient(x: Any) -> Any:
    """The same values, without derivatives."""
stop_gradient_p: Any
def sub(x: Any, y: Any) -> Any:
    """x - y."""
sub_p: Any
svd_p: Any
swap_p: Any
def switch(index: Any, branches: Any, *operands: Any, operand: Any = ...) -> Any:
    """The function of the operands that an index selects; the index is clamped."""
symmetric_product_p: Any
def tan(x: Any, *, accuracy: Any = ...) -> Any:
    """The tangent."""
tan_p: Any
def tanh(x: Any, *, accuracy: Any = ...) -> Any:
    """The hyperbolic tangent."""
tanh_p: Any
threefry2x32_p: Any
def tile(operand: Any, reps: Any) -> Any:
    """Repeats the array along each dimension."""
tile_p: Any
def top_k(operand: Any, k: Any, *, axis: Any = ...) -> Any:
    """The k greatest elements along an axis and their positions."""
top_k_p: Any
def transpose(operand: Any, permutation: Any) -> Any:
    """Reorders the dimensions."""
transpose_p: Any
triangular_solve_p: Any
tridiagonal_p: Any
tridiagonal_solve_p: Any
def unstack(x: Any, axis: Any = ...) -> Any:
    """The slices of an array along an axis."""
unstack_p: Any
def while_loop(cond_fun: Any, body_fun: Any, init_val: Any) -> Any:
    """Runs body_fun as long as cond_fun of the state is true."""
while_p: Any
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The value of x, lying on devices as the shardings say while a compiled program runs."""
xor_p: Any
def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function."""
zeta_p: Any
