// jax.numpy: counts of integers, and histograms in one and more dimensions.
#include <capibara/numpy/statistics.h>

#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/sorting.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

Array differences(const Array& x) {
  Array cut_x = steps::cut(x, 1, std::nullopt);
  return cut_x - steps::cut(x, 0, -1);
}

// The index of the edge before each value; values at the last edge belong to the last bin.
Array bin_of(const Array& edges, const Array& values) { return searchsorted(edges, values, {.side = "right"}); }

}  // namespace

Array bincount(const Array& x, const BincountOptions& options) {
  const Array values = is_bool(x.dtype()) ? lax::convert_element_type(x, DType::int32) : x;
  if (!is_integer(values.dtype())) {
    throw TypeError(concat("bincount: x argument must have an integer type; got ", to_string(x.type())));
  }
  if (values.ndim() != 1)
    throw ValueError(concat("bincount: only 1-dimensional input supported, got ", to_string(x.type())));
  int64_t length = 0;
  if (options.length) {
    length = *options.length;
  } else {
    steps::require_values("bincount", "x", values);
    length = options.minlength;
    for (int64_t value : values.to_vector<int64_t>()) length = std::max(length, value + 1);
    if (values.size() != 0) length = std::max<int64_t>(length, 1);
  }
  if (options.weights && options.weights->shape() != values.shape()) {
    throw ValueError(concat("bincount: weights must have the shape of x, got ", to_string(options.weights->type()),
                            " for ", to_string(x.type())));
  }
  const Array weights = options.weights ? *options.weights : lax::convert_element_type(Array(1), default_int(), false);
  const Array from_zero = clip(values, {.min = Array(0), .max = std::nullopt});
  return lax::full({length}, 0, weights.dtype()).at(from_zero).add(weights, {.mode = "drop"});
}

Array histogram_bin_edges(const Array& a, const BinEdgesOptions& options) {
  const DType dtype = inexact_dtype(a.dtype());
  int64_t count = 0;
  if (const Array* edges = std::get_if<Array>(&options.bins)) {
    if (edges->ndim() == 1) return edges->astype(dtype);
    if (edges->ndim() != 0 || !is_integer(edges->dtype())) {
      throw TypeError(concat("histogram_bin_edges: argument 'bins' must be an integer or a vector, got ",
                             to_string(edges->type())));
    }
    count = edges->item<int64_t>();
  } else {
    count = std::get<int64_t>(options.bins);
  }
  const Array range = (options.range ? *options.range : lax::stack(Arrays{min(a), max(a)}, 0)).astype(dtype);
  if (range.shape() != Shape{2}) {
    throw ValueError(concat("histogram_bin_edges: `range` must be either None or a sequence of two scalars, got ",
                            to_string(range.type())));
  }
  const Array empty = ptp(range) == 0;
  Array difference = range(0) - 0.5, chosen = numpy::where(empty, difference, range(0)), sum = range(1) + 0.5;
  return linspace(chosen, numpy::where(empty, sum, range(1)), {.num = count + 1, .dtype = dtype});
}

std::pair<Array, Array> histogram(const Array& a, const HistogramOptions& options) {
  Array x, weights;
  if (options.weights) {
    if (options.weights->shape() != a.shape()) {
      throw ValueError(concat("histogram: weights should have the same shape as a, got ",
                              to_string(options.weights->type()), " for ", to_string(a.type())));
    }
    const Arrays both = promote_dtypes_inexact({a, *options.weights});
    x = both[0];
    weights = both[1];
  } else {
    x = promote_inexact("histogram", a);
    weights = lax::full_like(x, 1);
  }
  const Array edges = histogram_bin_edges(x, {.bins = options.bins, .range = options.range});
  const int64_t count = edges.shape(0);
  const Array is_equal = x == edges(-1);
  const Array bin = numpy::where(is_equal, Array(count - 1), bin_of(edges, x));
  Array counts = steps::cut(lax::full({count}, 0, weights.dtype()).at(bin).add(weights), 1, std::nullopt);
  if (options.density) {
    Array quotient = counts / differences(edges);
    counts = quotient / sum(counts);
  }
  return {counts, edges};
}

HistogramddResult histogramdd(const Array& sample, const HistogramddOptions& options) {
  Array points;
  std::optional<Array> weights = options.weights;
  if (weights) {
    const Shape& shape = sample.shape();
    if (weights->shape() != Shape(shape.begin(), shape.begin() + (shape.empty() ? 0 : 1))) {
      throw ValueError(concat("histogramdd: should have one weight for each sample, got ", to_string(weights->type()),
                              " for ", to_string(sample.type())));
    }
    const Arrays both = promote_dtypes_inexact({sample, *weights});
    points = both[0];
    weights = both[1];
  } else {
    points = promote_inexact("histogramdd", sample);
  }
  if (points.ndim() != 2) {
    throw ValueError(concat("histogramdd: sample must be points x dimensions, got ", to_string(sample.type())));
  }
  const auto dimensions = static_cast<std::size_t>(points.shape(1));
  bool ranges_fit = options.range.empty() || options.range.size() == dimensions;
  for (const auto& range : options.range) ranges_fit = ranges_fit && (!range || range->shape(0) == 2);
  if (!ranges_fit) {
    throw ValueError(concat("histogramdd: for ", to_string(sample.type()), ", range must be a sequence of ", dimensions,
                            " pairs or Nones; got ", options.range.size(), " entries"));
  }
  if (options.bins.size() != 1 && options.bins.size() != dimensions) {
    throw ValueError(
        concat("histogramdd: should be a bin for each dimension, got ", options.bins.size(), " for ", dimensions));
  }
  HistogramddResult result;
  Arrays widths;
  Shape cells;  // with an additional bin at each end for outliers
  Array flat = lax::full({points.shape(0)}, 0, default_int());
  for (std::size_t i = 0; i < dimensions; ++i) {
    const Array x = points(slice(), static_cast<int64_t>(i));
    const Array edges = histogram_bin_edges(x, {.bins = options.bins[options.bins.size() == 1 ? 0 : i],
                                                .range = options.range.empty() ? std::nullopt : options.range[i]});
    Array bin = bin_of(edges, x);
    Array is_equal = x == edges(-1);
    bin = numpy::where(is_equal, bin - 1, bin);
    cells.push_back(edges.shape(0) + 1);
    Array product = flat * Array(cells.back());
    flat = product + clip(bin, {.min = Array(0), .max = Array(cells.back() - 1)});
    widths.push_back(differences(edges));
    result.edges.push_back(edges);
  }
  Array counts = lax::reshape(bincount(flat, {.weights = weights, .length = element_count(cells)}), cells);
  std::vector<Index> inside(dimensions, Index(slice(1, -1)));
  counts = index(counts, inside);
  if (options.density) {
    counts = counts.astype(points.dtype());
    counts = counts / sum(counts);
    for (std::size_t i = 0; i < dimensions; ++i) {
      Shape shape(dimensions, 1);
      shape[i] = widths[i].shape(0);
      counts = counts / lax::reshape(widths[i], shape);
    }
  }
  result.counts = counts;
  return result;
}

HistogramddResult histogram2d(const Array& x, const Array& y, const HistogramddOptions& options) {
  if (x.shape() != y.shape()) {
    throw TypeError(concat("histogram2d: x and y must have the same shape, got ", to_string(x.type()), " and ",
                           to_string(y.type())));
  }
  return histogramdd(lax::transpose(lax::stack(promote_dtypes({x, y}), 0), {1, 0}), options);
}

}  // namespace capibara::jax::numpy
