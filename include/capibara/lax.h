// jax.lax: the primitives as functions on arrays. They check their arguments and never promote dtypes.
#pragma once

#include <capibara/array.h>
#include <capibara/attributes.h>
#include <capibara/collective.h>

#include <functional>
#include <tuple>
#include <utility>
#include <vector>

namespace capibara::jax::lax {

using Arrays = std::vector<Array>;

// ---- elementwise, one operand ------------------------------------------------------------------------------------
// -x.
Array neg(const Array& x);
// -1, 0 or 1; x / |x| of complex numbers.
Array sign(const Array& x);
// The largest integer not above x.
Array floor(const Array& x);
// The least integer not below x.
Array ceil(const Array& x);
enum class RoundingMethod { away_from_zero, to_nearest_even };
// The nearest integer; halves go away from zero, or to the even one.
Array round(const Array& x, RoundingMethod method = RoundingMethod::away_from_zero);
// Whether each element is neither infinite nor NaN.
Array is_finite(const Array& x);
// e to the power x.
Array exp(const Array& x);
// Two to the power x.
Array exp2(const Array& x);
// The natural logarithm.
Array log(const Array& x);
// exp(x) - 1, accurate near zero.
Array expm1(const Array& x);
// log(1 + x), accurate near zero.
Array log1p(const Array& x);
// The hyperbolic tangent.
Array tanh(const Array& x);
// 1 / (1 + exp(-x)).
Array logistic(const Array& x);
// The sine.
Array sin(const Array& x);
// The cosine.
Array cos(const Array& x);
// The tangent.
Array tan(const Array& x);
// The inverse sine.
Array asin(const Array& x);
// The inverse cosine.
Array acos(const Array& x);
// The inverse tangent.
Array atan(const Array& x);
// The hyperbolic sine.
Array sinh(const Array& x);
// The hyperbolic cosine.
Array cosh(const Array& x);
// The inverse hyperbolic sine.
Array asinh(const Array& x);
// The inverse hyperbolic cosine.
Array acosh(const Array& x);
// The inverse hyperbolic tangent.
Array atanh(const Array& x);
// The square root.
Array sqrt(const Array& x);
// 1 / sqrt(x).
Array rsqrt(const Array& x);
// The cube root.
Array cbrt(const Array& x);
// x * x.
Array square(const Array& x);
// 1 / x.
Array reciprocal(const Array& x);
// x to the power of a static integer.
Array integer_pow(const Array& x, int64_t y);
// The absolute value.
Array abs(const Array& x);
// The real part of complex numbers.
Array real(const Array& x);
// The imaginary part of complex numbers.
Array imag(const Array& x);
// The complex conjugate; real floats become complex.
Array conj(const Array& x);
// All bits inverted; the logical not of booleans.
Array bitwise_not(const Array& x);
// The number of bits that are set.
Array population_count(const Array& x);
// The number of leading zero bits.
Array clz(const Array& x);
// The error function.
Array erf(const Array& x);
// One minus the error function.
Array erfc(const Array& x);
// The inverse of the error function.
Array erf_inv(const Array& x);
// The logarithm of the absolute value of the gamma function.
Array lgamma(const Array& x);
// The derivative of lgamma.
Array digamma(const Array& x);
// The modified Bessel function of order 0, scaled by exp(-|x|).
Array bessel_i0e(const Array& x);
// The modified Bessel function of order 1, scaled by exp(-|x|).
Array bessel_i1e(const Array& x);
// Rounds to a floating format with fewer bits, keeping the dtype.
Array reduce_precision(const Array& x, int64_t exponent_bits, int64_t mantissa_bits);
// The elements converted to another dtype.
Array convert_element_type(const Array& x, DType dtype);
Array convert_element_type(const Array& x, DType dtype, bool weak_type);
// The bits of the elements as another dtype; a last axis is added or removed where the widths differ.
Array bitcast_convert_type(const Array& x, DType dtype);
// The identity with derivative zero; in Python also of trees.
Array stop_gradient(const Array& x);
// A copy of x in memory of its own.
Array copy(const Array& x);

// ---- elementwise, several operands -------------------------------------------------------------------------------
// x + y.
Array add(const Array& x, const Array& y);
// x - y.
Array sub(const Array& x, const Array& y);
// x * y; in Python also in a given dtype.
Array mul(const Array& x, const Array& y);
// x / y; integers round towards zero.
Array div(const Array& x, const Array& y);
// The remainder of the division that rounds towards zero: it has the sign of x.
Array rem(const Array& x, const Array& y);
// x to the power y; y may be of an integer dtype.
Array pow(const Array& x, const Array& y);
// The greater; complex numbers are ordered by real, then imaginary part.
Array max(const Array& x, const Array& y);
// The lesser; complex numbers are ordered by real, then imaginary part.
Array min(const Array& x, const Array& y);
// atan(x / y) with the quadrant of the point (y, x).
Array atan2(const Array& x, const Array& y);
// The next floating-point number after the first operand in the direction of the second.
Array nextafter(const Array& x, const Array& y);
// The upper half of the bits of the product of integers.
Array mulhi(const Array& x, const Array& y);
// x + iy.
Array complex(const Array& re, const Array& im);
// The bits set in both.
Array bitwise_and(const Array& x, const Array& y);
// The bits set in either.
Array bitwise_or(const Array& x, const Array& y);
// The bits set in exactly one.
Array bitwise_xor(const Array& x, const Array& y);
// x << y.
Array shift_left(const Array& x, const Array& y);
// x >> y, filled with the sign bit.
Array shift_right_arithmetic(const Array& x, const Array& y);
// x >> y, filled with zeros.
Array shift_right_logical(const Array& x, const Array& y);
// x == y.
Array eq(const Array& x, const Array& y);
// x != y.
Array ne(const Array& x, const Array& y);
// x < y.
Array lt(const Array& x, const Array& y);
// x <= y.
Array le(const Array& x, const Array& y);
// x > y.
Array gt(const Array& x, const Array& y);
// x >= y.
Array ge(const Array& x, const Array& y);
// x == y in the total order -NaN < -inf < ... < -0 < +0 < ... < NaN.
Array eq_to(const Array& x, const Array& y);
// x < y in that total order.
Array lt_to(const Array& x, const Array& y);
// x <= y in that total order.
Array le_to(const Array& x, const Array& y);
// The regularised lower incomplete gamma function.
Array igamma(const Array& a, const Array& x);
// The regularised upper incomplete gamma function.
Array igammac(const Array& a, const Array& x);
// The derivative of igamma in a.
Array igamma_grad_a(const Array& a, const Array& x);
// The derivative of a gamma draw x in its parameter a.
Array random_gamma_grad(const Array& a, const Array& x);
// The regularised incomplete beta function.
Array betainc(const Array& a, const Array& b, const Array& x);
// The derivative of order m of digamma.
Array polygamma(const Array& m, const Array& x);
// The Hurwitz zeta function.
Array zeta(const Array& x, const Array& q);
// on_true where pred holds, on_false elsewhere.
Array select(const Array& pred, const Array& on_true, const Array& on_false);
// Selects each element from the case whose number `which` holds.
Array select_n(const Array& which, const Arrays& cases);
// x clamped to [min, max].
Array clamp(const Array& min, const Array& x, const Array& max);
// The sum of two cotangents: add without weak-type rules.
Array add_any(const Array& x, const Array& y);

// ---- creation ----------------------------------------------------------------------------------------------------
// An array filled with one number. Keeps the value's dtype and weak type where no dtype is given.
Array full(const Shape& shape, const Array& value);
Array full(const Shape& shape, const Array& value, DType dtype);
// An array of the shape and dtype of x, filled with one number.
Array full_like(const Array& x, const Array& value);
// Zeros of a type.
Array zeros(const ArrayType& type);
// Ones of a type.
Array ones(const ArrayType& type);
// Zeros of the type of x.
Array zeros_like(const Array& x);
// An array of unspecified elements, which are zeros.
Array empty(const Shape& shape, DType dtype);
// 0, 1, ... size - 1.
Array iota(DType dtype, int64_t size);
// Each element's position along one dimension.
Array broadcasted_iota(DType dtype, const Shape& shape, int64_t dimension);
Array broadcasted_iota(DType dtype, const Shape& shape, int64_t dimension, const Sharding& out_sharding);

// ---- shape -------------------------------------------------------------------------------------------------------
// Adds leading dimensions of these sizes.
Array broadcast(const Array& x, const Shape& sizes);
Array broadcast(const Array& x, const Shape& sizes, const Sharding& out_sharding);
// Broadcasts to a shape; broadcast_dimensions gives the result's dimension of each operand dimension.
Array broadcast_in_dim(const Array& x, const Shape& shape, const Ints& broadcast_dimensions);
Array broadcast_in_dim(const Array& x, const Shape& shape, const Ints& broadcast_dimensions,
                       const Sharding& out_sharding);
// Adds leading dimensions of size 1 until there are `rank` of them.
Array broadcast_to_rank(const Array& x, int64_t rank);
// Broadcasts to the shape of another array. x has rank 0 or that shape.
Array broadcast_like(const Array& x, const Array& like);
// The shape that all these shapes broadcast to.
Shape broadcast_shapes(const std::vector<Shape>& shapes);
// The same elements in row-major order in another shape.
Array reshape(const Array& x, const Shape& new_sizes, const Ints& dimensions = {});
Array reshape(const Array& x, const Shape& new_sizes, const Ints& dimensions, const Sharding& out_sharding);
// Removes dimensions of size 1.
Array squeeze(const Array& x, const Ints& dimensions);
// Inserts dimensions of size 1 at these positions of the result.
Array expand_dims(const Array& x, const Ints& dimensions);
// Merges adjacent dimensions into one.
Array collapse(const Array& x, int64_t start_dimension, int64_t stop_dimension);
// Reorders the dimensions.
Array transpose(const Array& x, const Ints& permutation);
// Reverses the elements along dimensions.
Array rev(const Array& x, const Ints& dimensions);
struct PadDim {
  int64_t low = 0, high = 0, interior = 0;
};
// Pads the ends of each dimension and between its elements; negative amounts remove elements.
Array pad(const Array& x, const Array& padding_value, const std::vector<PadDim>& config);
// Joins arrays along a dimension.
Array concatenate(const Arrays& operands, int64_t dimension);
// Splits an array into parts of these sizes along an axis.
Arrays split(const Array& x, const Ints& sizes, int64_t axis = 0);
// Repeats the array along each dimension.
Array tile(const Array& x, const Ints& reps);
// Joins arrays of one shape along a new axis.
Array stack(const Arrays& operands, int64_t axis = 0);
// The slices of an array along an axis.
Arrays unstack(const Array& x, int64_t axis = 0);
// The identity, across which compilers move nothing; in Python also of trees.
Array optimization_barrier(const Array& x);
Arrays optimization_barrier(const Arrays& operands);

// ---- slices, gather, scatter -------------------------------------------------------------------------------------
// A rectangular part of an array, with static bounds.
Array slice(const Array& x, const Ints& start_indices, const Ints& limit_indices, const Ints& strides = {});
// A slice along one axis; negative bounds count from the end.
Array slice_in_dim(const Array& x, std::optional<int64_t> start, std::optional<int64_t> limit, int64_t stride = 1,
                   int64_t axis = 0);
// One position along an axis.
Array index_in_dim(const Array& x, int64_t index, int64_t axis = 0, bool keepdims = true);
// A slice of static size at a computed position, clamped to stay in bounds.
Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes,
                    bool allow_negative_indices = true);
Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes,
                    const std::vector<bool>& allow_negative_indices);  // one per dimension
// dynamic_slice along one axis.
Array dynamic_slice_in_dim(const Array& x, const Array& start, int64_t slice_size, int64_t axis = 0,
                           bool allow_negative_indices = true);
// One computed position along an axis.
Array dynamic_index_in_dim(const Array& x, const Array& index, int64_t axis = 0, bool keepdims = true,
                           bool allow_negative_indices = true);
// The array with a slice replaced at a computed position.
Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           bool allow_negative_indices = true);
Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           const std::vector<bool>& allow_negative_indices);
// dynamic_update_slice along one axis.
Array dynamic_update_slice_in_dim(const Array& x, const Array& update, const Array& start, int64_t axis,
                                  bool allow_negative_indices = true);
// The array with one computed position along an axis replaced.
Array dynamic_update_index_in_dim(const Array& x, const Array& update, const Array& index, int64_t axis,
                                  bool allow_negative_indices = true);
// The elements at vectors of positions along several axes.
Array index_take(const Array& x, const Arrays& indices, const Ints& axes);

enum class GatherScatterMode { clip, fill_or_drop, promise_in_bounds, one_hot };
struct GatherOptions {
  bool unique_indices = false;
  bool indices_are_sorted = false;
  std::optional<GatherScatterMode> mode;  // by default clip
  std::optional<Array> fill_value;
};
// Slices of a static size at computed positions.
Array gather(const Array& x, const Array& start_indices, const GatherDimensionNumbers& dimension_numbers,
             const Ints& slice_sizes, const GatherOptions& options = {});
struct ScatterOptions {
  bool indices_are_sorted = false;
  bool unique_indices = false;
  std::optional<GatherScatterMode> mode;  // by default fill_or_drop
};
// The array with slices at computed positions replaced.
Array scatter(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
              const ScatterOptions& options = {});
// The array with updates added at computed positions.
Array scatter_add(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
// The array with updates subtracted at computed positions.
Array scatter_sub(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
// The array multiplied by updates at computed positions.
Array scatter_mul(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
// The array with the minimum of its elements and updates at computed positions.
Array scatter_min(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
// The array with the maximum of its elements and updates at computed positions.
Array scatter_max(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
// The array with a function applied at computed positions.
Array scatter_apply(const Array& x, const Array& indices, const std::function<Array(const Array&)>& function,
                    const ScatterDimensionNumbers& dims, const Shape& update_shape = {},
                    const ScatterOptions& options = {});

// ---- reductions --------------------------------------------------------------------------------------------------
struct ReduceOptions {
  Ints axes;
};
// The sum over axes.
Array reduce_sum(const Array& x, const ReduceOptions& options);
Array reduce_sum(const Array& x, const ReduceOptions& options, const Sharding& out_sharding);
// The product over axes.
Array reduce_prod(const Array& x, const ReduceOptions& options);
// The maximum over axes.
Array reduce_max(const Array& x, const ReduceOptions& options);
// The minimum over axes.
Array reduce_min(const Array& x, const ReduceOptions& options);
// The bits set everywhere along axes.
Array reduce_and(const Array& x, const ReduceOptions& options);
// The bits set anywhere along axes.
Array reduce_or(const Array& x, const ReduceOptions& options);
// The bits set an odd number of times along axes.
Array reduce_xor(const Array& x, const ReduceOptions& options);
// The first position of the maximum along an axis.
Array argmax(const Array& x, int64_t axis, DType index_dtype = DType::int32);
// The first position of the minimum along an axis.
Array argmin(const Array& x, int64_t axis, DType index_dtype = DType::int32);
// A general reduction: combines (accumulators..., elements...) into as many results as there are operands.
using Computation = std::function<Arrays(const Arrays& accumulators, const Arrays& elements)>;
// Combines elements along dimensions by an associative function.
Arrays reduce(const Arrays& operands, const Arrays& init_values, const Computation& computation,
              const Ints& dimensions);
Array reduce(const Array& operand, const Array& init_value,
             const std::function<Array(const Array&, const Array&)>& computation, const Ints& dimensions);

using Padding = std::vector<std::pair<int64_t, int64_t>>;
struct WindowOptions {
  Ints strides;              // by default 1
  std::string padding_mode;  // "VALID" (the default), "SAME", "SAME_LOWER"; ignored where `padding` is given
  std::optional<Padding> padding;
  Ints base_dilation, window_dilation;
};
// Combines the elements of each window by an associative function.
Arrays reduce_window(const Arrays& operands, const Arrays& init_values, const Computation& computation,
                     const Ints& window_dimensions, const WindowOptions& options = {});
Array reduce_window(const Array& operand, const Array& init_value,
                    const std::function<Array(const Array&, const Array&)>& computation, const Ints& window_dimensions,
                    const WindowOptions& options = {});
// The shape of what reduce_window returns.
Shape reduce_window_shape_tuple(const Shape& operand_shape, const Ints& window_dimensions, const Ints& strides,
                                const Padding& padding, const Ints& base_dilation = {},
                                const Ints& window_dilation = {});
// The pairs of paddings for VALID, SAME or SAME_LOWER.
Padding padtype_to_pads(const Shape& in_shape, const Shape& window_shape, const Ints& strides,
                        const std::string& padding);
// The sum of each window.
Array reduce_window_sum(const Array& x, const Ints& window_dimensions, const WindowOptions& options = {});
// The maximum of each window.
Array reduce_window_max(const Array& x, const Ints& window_dimensions, const WindowOptions& options = {});
// The minimum of each window.
Array reduce_window_min(const Array& x, const Ints& window_dimensions, const WindowOptions& options = {});

struct CumulativeOptions {
  int64_t axis = 0;
  bool reverse = false;
};
// The cumulative sum along an axis.
Array cumsum(const Array& x, const CumulativeOptions& options = {});
// The cumulative product along an axis.
Array cumprod(const Array& x, const CumulativeOptions& options = {});
// The cumulative maximum along an axis.
Array cummax(const Array& x, const CumulativeOptions& options = {});
// The cumulative minimum along an axis.
Array cummin(const Array& x, const CumulativeOptions& options = {});
// The cumulative log(sum(exp)) along an axis.
Array cumlogsumexp(const Array& x, const CumulativeOptions& options = {});

// ---- sorting -----------------------------------------------------------------------------------------------------
struct SortOptions {
  int64_t dimension = -1;
  bool is_stable = true;
  int64_t num_keys = 1;
};
// Sorts along a dimension; of several arrays the first num_keys decide, and all are reordered.
Array sort(const Array& x, const SortOptions& options = {});
Arrays sort(const Arrays& operands, const SortOptions& options = {});
// Sorts keys along a dimension and reorders values with them.
std::pair<Array, Array> sort_key_val(const Array& keys, const Array& values, const SortOptions& options = {});
// The k largest elements along an axis and their positions.
std::pair<Array, Array> top_k(const Array& x, int64_t k, int64_t axis = -1);
struct ApproxTopKOptions {
  int64_t reduction_dimension = -1;
  double recall_target = 0.95;
  int64_t reduction_input_size_override = -1;
  bool aggregate_to_topk = true;
};
// The k largest elements, approximately on some devices.
std::pair<Array, Array> approx_max_k(const Array& x, int64_t k, const ApproxTopKOptions& options = {});
// The k least elements, approximately on some devices.
std::pair<Array, Array> approx_min_k(const Array& x, int64_t k, const ApproxTopKOptions& options = {});

// ---- contractions ------------------------------------------------------------------------------------------------
struct DotOptions {
  std::string precision;  // "", "default", "high", "highest" or an algorithm name
  std::optional<DType> preferred_element_type;
};
// The dot product of vectors or matrices, or a general one with dimension numbers.
Array dot(const Array& lhs, const Array& rhs, const DotOptions& options = {});
// Contracts some dimensions of two arrays and batches over others.
Array dot_general(const Array& lhs, const Array& rhs, const DotDimensionNumbers& dimension_numbers,
                  const DotOptions& options = {});
// The matrix product over the last two dimensions; leading ones are batches.
Array batch_matmul(const Array& lhs, const Array& rhs, const DotOptions& options = {});
// A matrix product in which each group of rows of lhs has its own matrix of rhs.
Array ragged_dot(const Array& lhs, const Array& rhs, const Array& group_sizes, const DotOptions& options = {});
struct RaggedDimensions {
  DotDimensionNumbers dot;
  Ints lhs_ragged_dimensions;  // the one that is cut into groups
  Ints rhs_group_dimensions;   // the one that counts them, if the lhs is split along a free dimension
};
// A general dot product whose lhs is split into groups along one dimension.
Array ragged_dot_general(const Array& lhs, const Array& rhs, const Array& group_sizes,
                         const RaggedDimensions& dimensions, const DotOptions& options = {});

struct ConvOptions {
  Ints window_strides;  // by default 1
  std::string padding_mode = "VALID";
  std::optional<Padding> padding;
  Ints lhs_dilation, rhs_dilation;
  std::optional<ConvDimensionNumbers> dimension_numbers;  // by default NCHW, OIHW, NCHW
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  std::string precision;
  std::optional<DType> preferred_element_type;
};
// A convolution with strides, padding, dilation and groups.
Array conv_general_dilated(const Array& lhs, const Array& rhs, const ConvOptions& options = {});
// The positions of batch, feature and spatial dimensions in strings like NCHW. Specs like {"NHWC", "HWIO", "NHWC"}.
ConvDimensionNumbers conv_dimension_numbers(const std::string& lhs, const std::string& rhs, const std::string& out);
// A convolution with strides and padding.
Array conv(const Array& lhs, const Array& rhs, const Ints& window_strides, const std::string& padding);
// A convolution with strides, padding and dilation.
Array conv_with_general_padding(const Array& lhs, const Array& rhs, const ConvOptions& options);
struct ConvTransposeOptions {
  Ints strides;
  std::string padding_mode = "SAME";
  std::optional<Padding> padding;
  Ints rhs_dilation;
  std::optional<ConvDimensionNumbers> dimension_numbers;
  bool transpose_kernel = false;
  std::string precision;
  std::optional<DType> preferred_element_type;
  bool use_consistent_padding = false;  // pairs are the padding of the convolution that is transposed
};
// A transposed convolution.
Array conv_transpose(const Array& lhs, const Array& rhs, const ConvTransposeOptions& options);
// The patches that a convolution reads, as features.
Array conv_general_dilated_patches(const Array& lhs, const Ints& filter_shape, const ConvOptions& options = {});
// A convolution with a separate kernel at every position.
Array conv_general_dilated_local(const Array& lhs, const Array& rhs, const Ints& filter_shape,
                                 const ConvOptions& options = {});

// ---- FFT and random bits -----------------------------------------------------------------------------------------
enum class FftType { fft, ifft, rfft, irfft };
// The discrete Fourier transform over the last axes.
Array fft(const Array& x, FftType type, const Ints& fft_lengths);
enum class RandomAlgorithm { rng_default, rng_three_fry, rng_philox };
// A new state and random bits from the backend's generator.
std::pair<Array, Array> rng_bit_generator(const Array& key, const Shape& shape, DType dtype = DType::uint32,
                                          RandomAlgorithm algorithm = RandomAlgorithm::rng_default);
// Uniform numbers from the backend's own state; programs should use jax.random.
Array rng_uniform(const Array& low, const Array& high, const Shape& shape);

}  // namespace capibara::jax::lax
