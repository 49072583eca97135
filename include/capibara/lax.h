// jax.lax: the primitives as functions on arrays. They check their arguments and never promote dtypes.
#pragma once

#include <capibara/array.h>
#include <capibara/attributes.h>

#include <functional>
#include <tuple>
#include <utility>
#include <vector>

namespace capibara::jax::lax {

using Arrays = std::vector<Array>;

// ---- elementwise, one operand ------------------------------------------------------------------------------------
Array neg(const Array& x);
Array sign(const Array& x);
Array floor(const Array& x);
Array ceil(const Array& x);
enum class RoundingMethod { away_from_zero, to_nearest_even };
Array round(const Array& x, RoundingMethod method = RoundingMethod::away_from_zero);
Array is_finite(const Array& x);
Array exp(const Array& x);
Array exp2(const Array& x);
Array log(const Array& x);
Array expm1(const Array& x);
Array log1p(const Array& x);
Array tanh(const Array& x);
Array logistic(const Array& x);
Array sin(const Array& x);
Array cos(const Array& x);
Array tan(const Array& x);
Array asin(const Array& x);
Array acos(const Array& x);
Array atan(const Array& x);
Array sinh(const Array& x);
Array cosh(const Array& x);
Array asinh(const Array& x);
Array acosh(const Array& x);
Array atanh(const Array& x);
Array sqrt(const Array& x);
Array rsqrt(const Array& x);
Array cbrt(const Array& x);
Array square(const Array& x);
Array reciprocal(const Array& x);
Array integer_pow(const Array& x, int64_t y);
Array abs(const Array& x);
Array real(const Array& x);
Array imag(const Array& x);
Array conj(const Array& x);
Array bitwise_not(const Array& x);
Array population_count(const Array& x);
Array clz(const Array& x);
Array erf(const Array& x);
Array erfc(const Array& x);
Array erf_inv(const Array& x);
Array lgamma(const Array& x);
Array digamma(const Array& x);
Array bessel_i0e(const Array& x);
Array bessel_i1e(const Array& x);
Array reduce_precision(const Array& x, int64_t exponent_bits, int64_t mantissa_bits);
Array convert_element_type(const Array& x, DType dtype);
Array convert_element_type(const Array& x, DType dtype, bool weak_type);
Array bitcast_convert_type(const Array& x, DType dtype);
Array stop_gradient(const Array& x);
Array copy(const Array& x);

// ---- elementwise, several operands -------------------------------------------------------------------------------
Array add(const Array& x, const Array& y);
Array sub(const Array& x, const Array& y);
Array mul(const Array& x, const Array& y);
Array div(const Array& x, const Array& y);
Array rem(const Array& x, const Array& y);
Array pow(const Array& x, const Array& y);
Array max(const Array& x, const Array& y);
Array min(const Array& x, const Array& y);
Array atan2(const Array& x, const Array& y);
Array nextafter(const Array& x, const Array& y);
Array mulhi(const Array& x, const Array& y);
Array complex(const Array& re, const Array& im);
Array bitwise_and(const Array& x, const Array& y);
Array bitwise_or(const Array& x, const Array& y);
Array bitwise_xor(const Array& x, const Array& y);
Array shift_left(const Array& x, const Array& y);
Array shift_right_arithmetic(const Array& x, const Array& y);
Array shift_right_logical(const Array& x, const Array& y);
Array eq(const Array& x, const Array& y);
Array ne(const Array& x, const Array& y);
Array lt(const Array& x, const Array& y);
Array le(const Array& x, const Array& y);
Array gt(const Array& x, const Array& y);
Array ge(const Array& x, const Array& y);
Array eq_to(const Array& x, const Array& y);  // total orders: -NaN < -inf < ... < -0 < +0 < ... < NaN
Array lt_to(const Array& x, const Array& y);
Array le_to(const Array& x, const Array& y);
Array igamma(const Array& a, const Array& x);
Array igammac(const Array& a, const Array& x);
Array igamma_grad_a(const Array& a, const Array& x);
Array random_gamma_grad(const Array& a, const Array& x);
Array betainc(const Array& a, const Array& b, const Array& x);
Array polygamma(const Array& m, const Array& x);
Array zeta(const Array& x, const Array& q);
Array select(const Array& pred, const Array& on_true, const Array& on_false);
Array select_n(const Array& which, const Arrays& cases);
Array clamp(const Array& min, const Array& x, const Array& max);
// The sum of two cotangents: add without weak-type rules.
Array add_any(const Array& x, const Array& y);

// ---- creation ----------------------------------------------------------------------------------------------------
Array full(const Shape& shape, const Array& value);  // keeps the value's dtype and weak type
Array full(const Shape& shape, const Array& value, DType dtype);
Array full_like(const Array& x, const Array& value);
Array zeros(const ArrayType& type);
Array ones(const ArrayType& type);
Array zeros_like(const Array& x);
Array empty(const Shape& shape, DType dtype);
Array iota(DType dtype, int64_t size);
Array broadcasted_iota(DType dtype, const Shape& shape, int64_t dimension);

// ---- shape -------------------------------------------------------------------------------------------------------
Array broadcast(const Array& x, const Shape& sizes);
Array broadcast_in_dim(const Array& x, const Shape& shape, const Ints& broadcast_dimensions);
Array broadcast_to_rank(const Array& x, int64_t rank);
Array broadcast_like(const Array& x, const Array& like);  // rank 0 or equal shape
Shape broadcast_shapes(const std::vector<Shape>& shapes);
Array reshape(const Array& x, const Shape& new_sizes, const Ints& dimensions = {});
Array squeeze(const Array& x, const Ints& dimensions);
Array expand_dims(const Array& x, const Ints& dimensions);
Array collapse(const Array& x, int64_t start_dimension, int64_t stop_dimension);
Array transpose(const Array& x, const Ints& permutation);
Array rev(const Array& x, const Ints& dimensions);
struct PadDim {
  int64_t low = 0, high = 0, interior = 0;
};
Array pad(const Array& x, const Array& padding_value, const std::vector<PadDim>& config);
Array concatenate(const Arrays& operands, int64_t dimension);
Arrays split(const Array& x, const Ints& sizes, int64_t axis = 0);
Array tile(const Array& x, const Ints& reps);
Array stack(const Arrays& operands, int64_t axis = 0);
Arrays unstack(const Array& x, int64_t axis = 0);
Array optimization_barrier(const Array& x);
Arrays optimization_barrier(const Arrays& operands);

// ---- slices, gather, scatter -------------------------------------------------------------------------------------
Array slice(const Array& x, const Ints& start_indices, const Ints& limit_indices, const Ints& strides = {});
Array slice_in_dim(const Array& x, std::optional<int64_t> start, std::optional<int64_t> limit, int64_t stride = 1,
                   int64_t axis = 0);
Array index_in_dim(const Array& x, int64_t index, int64_t axis = 0, bool keepdims = true);
Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes,
                    bool allow_negative_indices = true);
Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes,
                    const std::vector<bool>& allow_negative_indices);  // one per dimension
Array dynamic_slice_in_dim(const Array& x, const Array& start, int64_t slice_size, int64_t axis = 0,
                           bool allow_negative_indices = true);
Array dynamic_index_in_dim(const Array& x, const Array& index, int64_t axis = 0, bool keepdims = true,
                           bool allow_negative_indices = true);
Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           bool allow_negative_indices = true);
Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           const std::vector<bool>& allow_negative_indices);
Array dynamic_update_slice_in_dim(const Array& x, const Array& update, const Array& start, int64_t axis,
                                  bool allow_negative_indices = true);
Array dynamic_update_index_in_dim(const Array& x, const Array& update, const Array& index, int64_t axis,
                                  bool allow_negative_indices = true);
Array index_take(const Array& x, const Arrays& indices, const Ints& axes);

enum class GatherScatterMode { clip, fill_or_drop, promise_in_bounds, one_hot };
struct GatherOptions {
  bool unique_indices = false;
  bool indices_are_sorted = false;
  std::optional<GatherScatterMode> mode;  // by default clip
  std::optional<Array> fill_value;
};
Array gather(const Array& x, const Array& start_indices, const GatherDimensionNumbers& dimension_numbers,
             const Ints& slice_sizes, const GatherOptions& options = {});
struct ScatterOptions {
  bool indices_are_sorted = false;
  bool unique_indices = false;
  std::optional<GatherScatterMode> mode;  // by default fill_or_drop
};
Array scatter(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
              const ScatterOptions& options = {});
Array scatter_add(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
Array scatter_sub(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
Array scatter_mul(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
Array scatter_min(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
Array scatter_max(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options = {});
Array scatter_apply(const Array& x, const Array& indices, const std::function<Array(const Array&)>& function,
                    const ScatterDimensionNumbers& dims, const Shape& update_shape = {},
                    const ScatterOptions& options = {});

// ---- reductions --------------------------------------------------------------------------------------------------
struct ReduceOptions {
  Ints axes;
};
Array reduce_sum(const Array& x, const ReduceOptions& options);
Array reduce_prod(const Array& x, const ReduceOptions& options);
Array reduce_max(const Array& x, const ReduceOptions& options);
Array reduce_min(const Array& x, const ReduceOptions& options);
Array reduce_and(const Array& x, const ReduceOptions& options);
Array reduce_or(const Array& x, const ReduceOptions& options);
Array reduce_xor(const Array& x, const ReduceOptions& options);
Array argmax(const Array& x, int64_t axis, DType index_dtype = DType::int32);
Array argmin(const Array& x, int64_t axis, DType index_dtype = DType::int32);
// A general reduction: combines (accumulators..., elements...) into as many results as there are operands.
using Computation = std::function<Arrays(const Arrays& accumulators, const Arrays& elements)>;
Arrays reduce(const Arrays& operands, const Arrays& init_values, const Computation& computation,
              const Ints& dimensions);
Array reduce(const Array& operand, const Array& init_value,
             const std::function<Array(const Array&, const Array&)>& computation, const Ints& dimensions);

using Padding = std::vector<std::pair<int64_t, int64_t>>;
struct WindowOptions {
  Ints strides;                // by default 1
  std::string padding_mode;    // "VALID" (the default), "SAME", "SAME_LOWER"; ignored where `padding` is given
  std::optional<Padding> padding;
  Ints base_dilation, window_dilation;
};
Arrays reduce_window(const Arrays& operands, const Arrays& init_values, const Computation& computation,
                     const Ints& window_dimensions, const WindowOptions& options = {});
Array reduce_window(const Array& operand, const Array& init_value,
                    const std::function<Array(const Array&, const Array&)>& computation,
                    const Ints& window_dimensions, const WindowOptions& options = {});
Shape reduce_window_shape_tuple(const Shape& operand_shape, const Ints& window_dimensions, const Ints& strides,
                                const Padding& padding, const Ints& base_dilation = {},
                                const Ints& window_dilation = {});
Padding padtype_to_pads(const Shape& in_shape, const Shape& window_shape, const Ints& strides,
                        const std::string& padding);
Array reduce_window_sum(const Array& x, const Ints& window_dimensions, const WindowOptions& options = {});
Array reduce_window_max(const Array& x, const Ints& window_dimensions, const WindowOptions& options = {});
Array reduce_window_min(const Array& x, const Ints& window_dimensions, const WindowOptions& options = {});

struct CumulativeOptions {
  int64_t axis = 0;
  bool reverse = false;
};
Array cumsum(const Array& x, const CumulativeOptions& options = {});
Array cumprod(const Array& x, const CumulativeOptions& options = {});
Array cummax(const Array& x, const CumulativeOptions& options = {});
Array cummin(const Array& x, const CumulativeOptions& options = {});
Array cumlogsumexp(const Array& x, const CumulativeOptions& options = {});

// ---- sorting -----------------------------------------------------------------------------------------------------
struct SortOptions {
  int64_t dimension = -1;
  bool is_stable = true;
  int64_t num_keys = 1;
};
Array sort(const Array& x, const SortOptions& options = {});
Arrays sort(const Arrays& operands, const SortOptions& options = {});
std::pair<Array, Array> sort_key_val(const Array& keys, const Array& values, const SortOptions& options = {});
std::pair<Array, Array> top_k(const Array& x, int64_t k, int64_t axis = -1);
struct ApproxTopKOptions {
  int64_t reduction_dimension = -1;
  double recall_target = 0.95;
  int64_t reduction_input_size_override = -1;
  bool aggregate_to_topk = true;
};
std::pair<Array, Array> approx_max_k(const Array& x, int64_t k, const ApproxTopKOptions& options = {});
std::pair<Array, Array> approx_min_k(const Array& x, int64_t k, const ApproxTopKOptions& options = {});

// ---- contractions ------------------------------------------------------------------------------------------------
struct DotOptions {
  std::string precision;  // "", "default", "high", "highest" or an algorithm name
  std::optional<DType> preferred_element_type;
};
Array dot(const Array& lhs, const Array& rhs, const DotOptions& options = {});
Array dot_general(const Array& lhs, const Array& rhs, const DotDimensionNumbers& dimension_numbers,
                  const DotOptions& options = {});
Array batch_matmul(const Array& lhs, const Array& rhs, const DotOptions& options = {});
Array ragged_dot(const Array& lhs, const Array& rhs, const Array& group_sizes, const DotOptions& options = {});
struct RaggedDimensions {
  DotDimensionNumbers dot;
  Ints lhs_ragged_dimensions;  // the one that is cut into groups
  Ints rhs_group_dimensions;   // the one that counts them, where the lhs is cut along a free dimension
};
Array ragged_dot_general(const Array& lhs, const Array& rhs, const Array& group_sizes,
                         const RaggedDimensions& dimensions, const DotOptions& options = {});

struct ConvOptions {
  Ints window_strides;       // by default 1
  std::string padding_mode = "VALID";
  std::optional<Padding> padding;
  Ints lhs_dilation, rhs_dilation;
  std::optional<ConvDimensionNumbers> dimension_numbers;  // by default NCHW, OIHW, NCHW
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  std::string precision;
  std::optional<DType> preferred_element_type;
};
Array conv_general_dilated(const Array& lhs, const Array& rhs, const ConvOptions& options = {});
// Specs like {"NHWC", "HWIO", "NHWC"}.
ConvDimensionNumbers conv_dimension_numbers(const std::string& lhs, const std::string& rhs, const std::string& out);
Array conv(const Array& lhs, const Array& rhs, const Ints& window_strides, const std::string& padding);
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
Array conv_transpose(const Array& lhs, const Array& rhs, const ConvTransposeOptions& options);
Array conv_general_dilated_patches(const Array& lhs, const Ints& filter_shape, const ConvOptions& options = {});
Array conv_general_dilated_local(const Array& lhs, const Array& rhs, const Ints& filter_shape,
                                 const ConvOptions& options = {});

// ---- FFT and random bits -----------------------------------------------------------------------------------------
enum class FftType { fft, ifft, rfft, irfft };
Array fft(const Array& x, FftType type, const Ints& fft_lengths);
enum class RandomAlgorithm { rng_default, rng_three_fry, rng_philox };
std::pair<Array, Array> rng_bit_generator(const Array& key, const Shape& shape, DType dtype = DType::uint32,
                                          RandomAlgorithm algorithm = RandomAlgorithm::rng_default);
Array rng_uniform(const Array& low, const Array& high, const Shape& shape);

// ---- collectives over a named axis -------------------------------------------------------------------------------
using AxisNames = std::vector<std::string>;
using AxisGroups = std::vector<Ints>;
Array psum(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
Array pmean(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
Array pmax(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
Array pmin(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
struct AllGatherOptions {
  int64_t axis = 0;
  bool tiled = false;
  AxisGroups axis_index_groups;
};
Array all_gather(const Array& x, const std::string& axis_name, const AllGatherOptions& options = {});
struct PsumScatterOptions {
  int64_t scatter_dimension = 0;
  bool tiled = false;
  AxisGroups axis_index_groups;
};
Array psum_scatter(const Array& x, const std::string& axis_name, const PsumScatterOptions& options = {});
struct AllToAllOptions {
  bool tiled = false;
  AxisGroups axis_index_groups;
};
Array all_to_all(const Array& x, const std::string& axis_name, int64_t split_axis, int64_t concat_axis,
                 const AllToAllOptions& options = {});
Array ppermute(const Array& x, const std::string& axis_name, const std::vector<std::pair<int64_t, int64_t>>& perm);
Array pshuffle(const Array& x, const std::string& axis_name, const Ints& perm);
Array pswapaxes(const Array& x, const std::string& axis_name, int64_t axis);
Array pbroadcast(const Array& x, const std::string& axis_name, int64_t source);
Array axis_index(const std::string& axis_name);
int64_t axis_size(const std::string& axis_name);

}  // namespace capibara::jax::lax
