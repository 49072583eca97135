// jax.numpy: sums, extrema, means and variances over axes, their variants that skip NaNs, and running sums.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <utility>

namespace capibara::jax::numpy {

// `where` selects the elements to include, broadcast to the array; `initial` is one more element.
struct SumOptions {
  Axis axis = {};
  std::optional<DType> dtype = {};
  bool keepdims = false;
  std::optional<Array> initial = {};
  std::optional<Array> where = {};
  bool promote_integers = true;  // widens narrow integers to the default width; no effect if dtype is given
};
// The sum of the elements along axes.
Array sum(const Array& a, const SumOptions& options = {});
// The product of the elements along axes.
Array prod(const Array& a, const SumOptions& options = {});
// The sum of the elements that are not NaN.
Array nansum(const Array& a, const SumOptions& options = {});
// The product of the elements that are not NaN.
Array nanprod(const Array& a, const SumOptions& options = {});

struct MaxOptions {
  Axis axis = {};
  bool keepdims = false;
  std::optional<Array> initial = {};  // required with `where`, and for arrays without elements
  std::optional<Array> where = {};
};
// The largest element along axes; NaN where there is one.
Array max(const Array& a, const MaxOptions& options = {});
// The least element along axes; NaN where there is one.
Array min(const Array& a, const MaxOptions& options = {});
// Another name of max.
Array amax(const Array& a, const MaxOptions& options = {});
// Another name of min.
Array amin(const Array& a, const MaxOptions& options = {});
// The largest element that is not NaN.
Array nanmax(const Array& a, const MaxOptions& options = {});
// The least element that is not NaN.
Array nanmin(const Array& a, const MaxOptions& options = {});

struct AnyOptions {
  Axis axis = {};
  bool keepdims = false;
  std::optional<Array> where = {};
};
// Whether any element along axes is true.
Array any(const Array& a, const AnyOptions& options = {});
// Whether all elements along axes are true.
Array all(const Array& a, const AnyOptions& options = {});

struct PtpOptions {
  Axis axis = {};
  bool keepdims = false;
};
// The largest minus the smallest element along axes.
Array ptp(const Array& a, const PtpOptions& options = {});
// The number of nonzero elements along axes.
Array count_nonzero(const Array& a, const PtpOptions& options = {});

struct MeanOptions {
  Axis axis = {};
  std::optional<DType> dtype = {};
  bool keepdims = false;
  std::optional<Array> where = {};
};
// The mean along axes.
Array mean(const Array& a, const MeanOptions& options = {});
// The mean of the elements that are not NaN.
Array nanmean(const Array& a, const MeanOptions& options = {});

struct VarOptions {
  Axis axis = {};
  std::optional<DType> dtype = {};
  Array ddof = 0;  // the sum of squares is divided by the count less this
  bool keepdims = false;
  std::optional<Array> where = {};
  std::optional<Array> mean = {};        // if it is already known
  std::optional<Array> correction = {};  // another name of ddof
};
// The variance along axes.
Array var(const Array& a, const VarOptions& options = {});
// The standard deviation along axes.
Array std(const Array& a, const VarOptions& options = {});
// The variance of the elements that are not NaN.
Array nanvar(const Array& a, const VarOptions& options = {});
// The standard deviation of the elements that are not NaN.
Array nanstd(const Array& a, const VarOptions& options = {});

struct AverageOptions {
  Axis axis = {};
  std::optional<Array> weights = {};  // of a's shape, or of the shape of its reduced axes
  bool keepdims = false;
};
// The weighted mean along axes; with returned=True also the sum of the weights.
Array average(const Array& a, const AverageOptions& options = {});
// The weighted mean and the sum of the weights: returned=True.
std::pair<Array, Array> average_and_weights(const Array& a, const AverageOptions& options = {});

struct CumulativeOptions {
  std::optional<int64_t> axis = {};  // absent: of the flattened array
  std::optional<DType> dtype = {};
};
// The cumulative sum along an axis.
Array cumsum(const Array& a, const CumulativeOptions& options = {});
// The cumulative product along an axis.
Array cumprod(const Array& a, const CumulativeOptions& options = {});
// The cumulative sum, with NaNs as zeros.
Array nancumsum(const Array& a, const CumulativeOptions& options = {});
// The cumulative product, with NaNs as ones.
Array nancumprod(const Array& a, const CumulativeOptions& options = {});

struct CumulativeSumOptions {
  std::optional<int64_t> axis = {};  // required for arrays of several dimensions
  std::optional<DType> dtype = {};
  bool include_initial = false;  // a leading 0 (of cumulative_prod: 1)
};
// The cumulative sum in the array API's form, small integers widened.
Array cumulative_sum(const Array& x, const CumulativeSumOptions& options = {});
// The cumulative product in the array API's form.
Array cumulative_prod(const Array& x, const CumulativeSumOptions& options = {});

}  // namespace capibara::jax::numpy
