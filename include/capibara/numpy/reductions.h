// jax.numpy: sums, extrema, means and variances over axes, their variants that skip NaNs, and running sums.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <utility>

namespace capibara::jax::numpy {

// `where` selects the elements that take part, broadcast to the array; `initial` is one more element.
struct SumOptions {
  Axis axis = {};
  std::optional<DType> dtype = {};
  bool keepdims = false;
  std::optional<Array> initial = {};
  std::optional<Array> where = {};
  bool promote_integers = true;  // narrow integers to the default width; not where dtype is given
};
Array sum(const Array& a, const SumOptions& options = {});
Array prod(const Array& a, const SumOptions& options = {});
Array nansum(const Array& a, const SumOptions& options = {});
Array nanprod(const Array& a, const SumOptions& options = {});

struct MaxOptions {
  Axis axis = {};
  bool keepdims = false;
  std::optional<Array> initial = {};  // needed with `where`, and for arrays without elements
  std::optional<Array> where = {};
};
Array max(const Array& a, const MaxOptions& options = {});
Array min(const Array& a, const MaxOptions& options = {});
Array amax(const Array& a, const MaxOptions& options = {});
Array amin(const Array& a, const MaxOptions& options = {});
Array nanmax(const Array& a, const MaxOptions& options = {});
Array nanmin(const Array& a, const MaxOptions& options = {});

struct AnyOptions {
  Axis axis = {};
  bool keepdims = false;
  std::optional<Array> where = {};
};
Array any(const Array& a, const AnyOptions& options = {});
Array all(const Array& a, const AnyOptions& options = {});

struct PtpOptions {
  Axis axis = {};
  bool keepdims = false;
};
// The greatest less the least element.
Array ptp(const Array& a, const PtpOptions& options = {});
Array count_nonzero(const Array& a, const PtpOptions& options = {});

struct MeanOptions {
  Axis axis = {};
  std::optional<DType> dtype = {};
  bool keepdims = false;
  std::optional<Array> where = {};
};
Array mean(const Array& a, const MeanOptions& options = {});
Array nanmean(const Array& a, const MeanOptions& options = {});

struct VarOptions {
  Axis axis = {};
  std::optional<DType> dtype = {};
  Array ddof = 0;  // the sum of squares is divided by the count less this
  bool keepdims = false;
  std::optional<Array> where = {};
  std::optional<Array> mean = {};        // where it is known
  std::optional<Array> correction = {};  // another name of ddof
};
Array var(const Array& a, const VarOptions& options = {});
Array std(const Array& a, const VarOptions& options = {});
Array nanvar(const Array& a, const VarOptions& options = {});
Array nanstd(const Array& a, const VarOptions& options = {});

struct AverageOptions {
  Axis axis = {};
  std::optional<Array> weights = {};  // of a's shape, or of the shape of its reduced axes
  bool keepdims = false;
};
Array average(const Array& a, const AverageOptions& options = {});
// The average and the sum of the weights.
std::pair<Array, Array> average_and_weights(const Array& a, const AverageOptions& options = {});

struct CumulativeOptions {
  std::optional<int64_t> axis = {};  // by default of the flattened array
  std::optional<DType> dtype = {};
};
Array cumsum(const Array& a, const CumulativeOptions& options = {});
Array cumprod(const Array& a, const CumulativeOptions& options = {});
Array nancumsum(const Array& a, const CumulativeOptions& options = {});
Array nancumprod(const Array& a, const CumulativeOptions& options = {});

struct CumulativeSumOptions {
  std::optional<int64_t> axis = {};  // needed for arrays of several dimensions
  std::optional<DType> dtype = {};
  bool include_initial = false;  // a leading 0 (of cumulative_prod: 1)
};
Array cumulative_sum(const Array& x, const CumulativeSumOptions& options = {});
Array cumulative_prod(const Array& x, const CumulativeSumOptions& options = {});

}  // namespace capibara::jax::numpy
