// jax.numpy: quantiles, covariances, counts and histograms.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capibara::jax::numpy {

struct QuantileOptions {
  Axis axis = {};
  std::string method = "linear";  // or lower, higher, midpoint, nearest, inverted_cdf
  bool keepdims = false;
  std::optional<Array> weights = {};  // with inverted_cdf
};
// The quantiles along axes, q between 0 and 1. q is a scalar or a vector, whose axis comes first in the result.
Array quantile(const Array& a, const Array& q, const QuantileOptions& options = {});
// The quantiles of the elements that are not NaN.
Array nanquantile(const Array& a, const Array& q, const QuantileOptions& options = {});
// The percentiles along axes, q between 0 and 100.
Array percentile(const Array& a, const Array& q, const QuantileOptions& options = {});
// The percentiles of the elements that are not NaN.
Array nanpercentile(const Array& a, const Array& q, const QuantileOptions& options = {});
struct MedianOptions {
  Axis axis = {};
  bool keepdims = false;
};
// The median along axes.
Array median(const Array& a, const MedianOptions& options = {});
// The median of the elements that are not NaN.
Array nanmedian(const Array& a, const MedianOptions& options = {});

struct CovOptions {
  std::optional<Array> y = {};  // more variables
  bool rowvar = true;           // variables in rows, observations in columns
  bool bias = false;
  std::optional<int64_t> ddof = {};  // by default 1, with bias 0
  std::optional<Array> fweights = {}, aweights = {};
  std::optional<DType> dtype = {};
};
// The covariance matrix of variables in rows.
Array cov(const Array& m, const CovOptions& options = {});
struct CorrcoefOptions {
  std::optional<Array> y = {};
  bool rowvar = true;
  std::optional<DType> dtype = {};
};
// The correlation coefficients of variables in rows.
Array corrcoef(const Array& x, const CorrcoefOptions& options = {});

struct BincountOptions {
  std::optional<Array> weights = {};
  int64_t minlength = 0;
  std::optional<int64_t> length = {};  // required if x is traced; greater values are dropped
};
// How often each of 0, 1, ... occurs, or the sum of its weights.
Array bincount(const Array& x, const BincountOptions& options = {});

// A number of bins of equal width, or the edges of the bins.
using Bins = std::variant<int64_t, Array>;
struct HistogramOptions {
  Bins bins = 10;
  std::optional<Array> range = {};  // the outer edges; by default the least and the greatest element
  std::optional<Array> weights = {};
  bool density = false;  // the integral over all bins is 1
};
// The counts in bins, and the edges of the bins.
std::pair<Array, Array> histogram(const Array& a, const HistogramOptions& options = {});
struct BinEdgesOptions {
  Bins bins = 10;
  std::optional<Array> range = {};
};
// The edges of the bins of a histogram.
Array histogram_bin_edges(const Array& a, const BinEdgesOptions& options = {});

struct HistogramddOptions {
  std::vector<Bins> bins = {10};                 // one for all dimensions, or one per dimension
  std::vector<std::optional<Array>> range = {};  // none, or one per dimension
  std::optional<Array> weights = {};
  bool density = false;
};
struct HistogramddResult {
  Array counts;
  std::vector<Array> edges;
};
// The counts in boxes, and the edges along each dimension. sample is points x dimensions.
HistogramddResult histogramdd(const Array& sample, const HistogramddOptions& options = {});
// The counts of points in rectangles, and the edges along both dimensions.
HistogramddResult histogram2d(const Array& x, const Array& y, const HistogramddOptions& options = {});

}  // namespace capibara::jax::numpy
