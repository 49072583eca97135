// Table rows for jax.numpy: quantiles, covariances and histograms.
#include <capibara/numpy/statistics.h>

#include "library/table/families.h"
#include "library/table/static_axis.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

void refuse_in_place(const Arguments& a) {
  if (!a.flag("overwrite_input") && !a.given("out")) return;
  throw ValueError(concat("jax.numpy.", a.function(), " does not support overwrite_input=True or out != None"));
}

numpy::QuantileOptions quantile_options(const Arguments& a) {
  refuse_in_place(a);
  return {.axis = static_axis(a, "axis"),
          .method = a.text("method"),
          .keepdims = a.flag("keepdims"),
          .weights = a.optional_array("weights")};
}

numpy::MedianOptions median_options(const Arguments& a) {
  refuse_in_place(a);
  return {.axis = static_axis(a, "axis"), .keepdims = a.flag("keepdims")};
}

numpy::Bins bins_of(const Arguments& a, const Value& value) {
  if (const int64_t* count = value.get_if<int64_t>()) return *count;
  if (value.array()) return *value.array();
  if (const bool* truth = value.get_if<bool>()) return int64_t{*truth};
  throw TypeError(concat(a.function(), ": argument 'bins' must be an integer or an array, got ", value.type_name()));
}

std::optional<Array> range_of(const Arguments& a, const Value& value) {
  if (value.is_none()) return std::nullopt;
  return array_of(value, a.function().c_str());
}

// For several dimensions: one number for all, or a sequence (or vector) with one entry per dimension.
numpy::HistogramddOptions histogramdd_options(const Arguments& a, std::size_t dimensions) {
  numpy::HistogramddOptions options{.weights = a.optional_array("weights"), .density = a.flag("density")};
  const Value& bins = a["bins"];
  const Array* whole = bins.array();
  if (const Sequence* sequence = bins.sequence()) {
    options.bins.clear();
    for (const Value& one : sequence->items) options.bins.push_back(bins_of(a, one));
  } else if (whole && whole->ndim() > 0) {
    options.bins.clear();
    for (const Array& one : a.arrays("bins")) options.bins.push_back(one);
  } else {
    options.bins = {bins_of(a, bins)};
  }
  const bool several = bins.sequence() || (whole && whole->ndim() > 0);
  if (several && options.bins.size() != dimensions) {
    throw ValueError(
        concat(a.function(), ": should be a bin for each dimension, got ", options.bins.size(), " for ", dimensions));
  }
  if (const Sequence* ranges = a["range"].sequence()) {
    for (const Value& one : ranges->items) options.range.push_back(range_of(a, one));
  } else if (a.given("range")) {
    for (const Array& one : a.arrays("range")) options.range.push_back(one);
  }
  return options;
}

// histogram2d also takes one vector of edges for both dimensions.
numpy::HistogramddOptions histogram2d_options(const Arguments& a) {
  const Value& bins = a["bins"];
  const Sequence* sequence = bins.sequence();
  std::size_t count = 1;
  if (sequence)
    count = sequence->items.size();
  else if (bins.array() && bins.array()->ndim() > 0)
    count = static_cast<std::size_t>(bins.array()->shape(0));
  if (count == 1 || count == 2) return histogramdd_options(a, 2);
  numpy::HistogramddOptions options{.weights = a.optional_array("weights"), .density = a.flag("density")};
  const Array edges = array_of(bins, "histogram2d");
  options.bins = {edges, edges};
  if (const Sequence* ranges = a["range"].sequence()) {
    for (const Value& one : ranges->items) options.range.push_back(range_of(a, one));
  }
  return options;
}

const char* const quantile_signature =
    "a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None";
const char* const median_signature = "a, axis=None, out=None, overwrite_input=False, keepdims=False";

const Function numpy_statistics_functions[] = {
    {"quantile", quantile_signature,
     [](const Arguments& a) -> Value { return numpy::quantile(a.array("a"), a.array("q"), quantile_options(a)); },
     "The quantiles along axes, q between 0 and 1."},
    {"nanquantile", quantile_signature,
     [](const Arguments& a) -> Value { return numpy::nanquantile(a.array("a"), a.array("q"), quantile_options(a)); },
     "The quantiles of the elements that are not NaN."},
    {"percentile",
     "a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None, "
     "out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::percentile(a.array("a"), a.array("q"), quantile_options(a));
     },
     "The percentiles along axes, q between 0 and 100."},
    {"nanpercentile", quantile_signature,
     [](const Arguments& a) -> Value { return numpy::nanpercentile(a.array("a"), a.array("q"), quantile_options(a)); },
     "The percentiles of the elements that are not NaN."},
    {"median", median_signature,
     [](const Arguments& a) -> Value { return numpy::median(a.array("a"), median_options(a)); },
     "The median along axes."},
    {"nanmedian", median_signature,
     [](const Arguments& a) -> Value { return numpy::nanmedian(a.array("a"), median_options(a)); },
     "The median of the elements that are not NaN."},
    {"cov", "m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None",
     [](const Arguments& a) -> Value {
       return numpy::cov(a.array("m"), {.y = a.optional_array("y"),
                                        .rowvar = a.flag("rowvar"),
                                        .bias = a.flag("bias"),
                                        .ddof = a.optional_integer("ddof"),
                                        .fweights = a.optional_array("fweights"),
                                        .aweights = a.optional_array("aweights"),
                                        .dtype = a.optional_dtype("dtype")});
     },
     "The covariance matrix of variables in rows."},
    {"corrcoef", "x, y=None, rowvar=True, dtype=None",
     [](const Arguments& a) -> Value {
       return numpy::corrcoef(
           a.array("x"), {.y = a.optional_array("y"), .rowvar = a.flag("rowvar"), .dtype = a.optional_dtype("dtype")});
     },
     "The correlation coefficients of variables in rows."},
    {"bincount", "x, weights=None, minlength=0, *, length=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::bincount(a.array("x"), {.weights = a.optional_array("weights"),
                                             .minlength = a.integer("minlength"),
                                             .length = a.optional_integer("length")});
     },
     "How often each of 0, 1, ... occurs, or the sum of its weights."},
    {"histogram_bin_edges", "a, bins=10, range: ArrayLike | Sequence[ArrayLike] = None, weights=None",
     [](const Arguments& a) -> Value {
       if (a["bins"].get_if<std::string>())
         throw NotImplementedError("histogram_bin_edges: string values for `bins` not implemented.");
       return numpy::histogram_bin_edges(a.array("a"),
                                         {.bins = bins_of(a, a["bins"]), .range = range_of(a, a["range"])});
     },
     "The edges of the bins of a histogram."},
    {"histogram",
     "a, bins=10, range: ArrayLike | Sequence[ArrayLike] = None, weights=None, density=None -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       return numpy::histogram(a.array("a"), {.bins = bins_of(a, a["bins"]),
                                              .range = range_of(a, a["range"]),
                                              .weights = a.optional_array("weights"),
                                              .density = a.flag("density")});
     },
     "The counts in bins, and the edges of the bins."},
    {"histogramdd",
     "sample, bins: ArrayLike | Sequence[ArrayLike] = 10, range=None, weights=None, density=None -> tuple[Array, "
     "list[Array]]",
     [](const Arguments& a) -> Value {
       const Array sample = a.array("sample");
       const std::size_t dimensions = sample.ndim() == 2 ? static_cast<std::size_t>(sample.shape(1)) : 1;
       const numpy::HistogramddResult result = numpy::histogramdd(sample, histogramdd_options(a, dimensions));
       return Value::tuple_of({result.counts, Value::list_of(result.edges)});
     },
     "The counts in boxes, and the edges along each dimension."},
    {"histogram2d",
     "x, y, bins: ArrayLike | Sequence[ArrayLike] = 10, range=None, weights=None, density=None -> tuple[Array, Array, "
     "Array]",
     [](const Arguments& a) -> Value {
       const Array x = a.array("x"), y = a.array("y");
       const numpy::HistogramddResult result = numpy::histogram2d(x, y, histogram2d_options(a));
       return Value::tuple_of(Arrays{result.counts, result.edges[0], result.edges[1]});
     },
     "The counts of points in rectangles, and the edges along both dimensions."},
};

}  // namespace

Family numpy_statistics() { return numpy_statistics_functions; }

}  // namespace capibara::library
