// jax.numpy: searching in sorted arrays, and the positions and values where a condition holds.
#include <capibara/numpy/sorting.h>

#include <capibara/control.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>

#include <tuple>

#include "lax/collective/collective.h"
#include "lax/operators/promote.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

// Canonicalizes zeros and NaNs to one value each, so that total orders match those of sort.
Array sort_key(const Array& x) {
  if (!is_floating(x.dtype())) return x;
  const Array is_equal = lax::eq(x, steps::constant(x, 0));
  const Array one_zero = lax::select(is_equal, lax::full_like(x, 0), x);
  Array is_nan = isnan(x);
  return lax::select(is_nan, lax::full_like(x, steps::nan), one_zero);
}

using Order = Array (*)(const Array&, const Array&);

Array compare(Order order, const Array& x, const Array& y) {
  const Arrays both = capibara::broadcast_arrays("searchsorted", {x, y});
  if (!is_complex(x.dtype())) {
    Array sort_key_both = sort_key(both[0]);
    return order(sort_key_both, sort_key(both[1]));
  }
  const Array x_real = sort_key(lax::real(both[0])), y_real = sort_key(lax::real(both[1]));
  const Array sort_key_value = sort_key(lax::imag(both[0]));
  const Array by_imaginary = order(sort_key_value, sort_key(lax::imag(both[1])));
  Array lt_to_x_real = lax::lt_to(x_real, y_real);
  return lax::bitwise_or(lt_to_x_real, lax::bitwise_and(lax::eq_to(x_real, y_real), by_imaginary));
}

// Halves the ranges of all queries simultaneously.
Array search_by_halves(const Array& sorted, const Array& query, bool left, DType dtype, bool unrolled) {
  const int64_t size = sorted.shape(0);
  if (size == 0) return lax::full(query.shape(), 0, dtype);
  const DType unsigned_dtype = bits(dtype) == 64 ? DType::uint64 : DType::uint32;
  int64_t levels = 0;
  while ((int64_t{1} << levels) < size + 1) ++levels;
  using Range = std::pair<Array, Array>;  // low, high
  auto step = [&](const Range& range, std::monostate) {
    const auto& [low, high] = range;
    const Array middle = lax::add(low, lax::div(lax::sub(high, low), 2));
    const Array go_left = compare(left ? lax::le_to : lax::lt_to, query, sorted(middle));
    Array chosen = lax::select(go_left, low, middle);
    return std::pair(Range(chosen, lax::select(go_left, middle, high)), std::monostate{});
  };
  // Inside shard_map the range varies along the axes of both operands.
  auto bound = [&](int64_t value) {
    const Array filled = lax::full(query.shape(), Array(value), unsigned_dtype);
    return lax::varied_as(query, lax::varied_as(sorted, filled));
  };
  const Array low = bound(0);
  const Range whole(low, bound(size));
  const Range found =
      lax::scan(step, whole, std::monostate{}, {.length = levels, .unroll = unrolled ? levels : 1}).first;
  return found.second.astype(dtype);
}

Array search_by_comparison(const Array& sorted, const Array& query, bool left, DType dtype) {
  Ints trailing;
  for (int64_t i = 0; i < query.ndim(); ++i) trailing.push_back(i + 1);
  const Array column = lax::expand_dims(sorted, trailing), row = lax::expand_dims(query, {0});
  return sum(compare(left ? lax::lt_to : lax::le_to, column, row), {.axis = 0, .dtype = dtype});
}

// The position of each element among the sorted ones.
Array rank(const Array& x) {
  const Array positions = lax::iota(DType::int32, x.shape(0));
  return lax::full_like(positions, 0).at(lax::sort_key_val(x, positions).second).set(positions);
}

Array search_by_sorting(const Array& sorted, const Array& query, bool left, DType dtype) {
  const Array flat = ravel(query);
  const Array among_both = left ? steps::cut(rank(lax::concatenate({flat, sorted}, 0)), 0, flat.size())
                                : steps::cut(rank(lax::concatenate({sorted, flat}, 0)), sorted.size(), std::nullopt);
  return lax::reshape(lax::sub(among_both, rank(flat)), query.shape()).astype(dtype);
}

}  // namespace

Array searchsorted(const Array& a, const Array& v, const SearchsortedOptions& options) {
  if (a.ndim() != 1) throw ValueError(concat("searchsorted: a should be 1-dimensional, got ", to_string(a.type())));
  const Arrays both = promote_dtypes({a, v});
  const Array sorted = options.sorter ? both[0](*options.sorter) : both[0];
  if (options.side != "left" && options.side != "right") {
    throw ValueError(concat("searchsorted: argument 'side' must be 'left' or 'right', got '", options.side, "'"));
  }
  const bool left = options.side == "left";
  const DType dtype = sorted.shape(0) > std::numeric_limits<int32_t>::max() ? DType::int64 : DType::int32;
  if (options.method == "scan") return search_by_halves(sorted, both[1], left, dtype, false);
  if (options.method == "scan_unrolled") return search_by_halves(sorted, both[1], left, dtype, true);
  if (options.method == "compare_all") return search_by_comparison(sorted, both[1], left, dtype);
  if (options.method == "sort") return search_by_sorting(sorted, both[1], left, dtype);
  throw ValueError(concat("searchsorted: argument 'method' must be one of 'compare_all', 'scan', 'scan_unrolled', ",
                          "'sort', got '", options.method, "'"));
}

Array digitize(const Array& x, const Array& bins, const DigitizeOptions& options) {
  if (bins.ndim() != 1)
    throw ValueError(concat("digitize: bins must be a 1-dimensional array; got ", to_string(bins.type())));
  const int64_t count = bins.shape(0);
  if (count == 0) return lax::full(x.shape(), 0, DType::int32);
  const SearchsortedOptions search{.side = options.right ? "left" : "right", .method = options.method};
  Array bins_value = bins(-1), is_at_least = bins_value >= bins(0), searchsorted_bins = searchsorted(bins, x, search);
  return numpy::where(is_at_least, searchsorted_bins, Array(count) - searchsorted(flip(bins), x, search));
}

std::vector<Array> nonzero(const Array& a, const NonzeroOptions& options) {
  if (a.ndim() == 0) {
    throw ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.");
  }
  const Array mask = is_bool(a.dtype()) ? a : lax::ne(a, steps::constant(a, 0));
  if (!options.size) steps::require_values("nonzero", "a", mask);
  const int64_t size = options.size ? *options.size : sum(mask).item<int64_t>();
  if (a.size() == 0 || size == 0) return Arrays(a.shape().size(), lax::full({size}, 0, default_int()));
  // The number of elements preceded by k nonzero ones, inclusively; the cumulative sum is the position of the next one.
  const Array up_to = cumsum(mask, {});
  const Array runs = lax::full({size}, 0, default_int()).at(up_to).add(1, {.mode = "drop"});
  const Array flat = cumsum(runs, {});
  Arrays result;
  int64_t stride = a.size();
  for (int64_t dimension : a.shape()) {
    stride /= dimension;
    result.push_back(lax::rem(lax::div(flat, Array(stride)), Array(dimension)));
  }
  if (options.fill_value.empty()) return result;
  Arrays fills = options.fill_value;
  if (fills.size() == 1) fills = Arrays(result.size(), fills[0]);
  for (const Array& fill : fills) {
    if (fill.ndim() == 0 && fills.size() == result.size()) continue;
    throw ValueError(concat("nonzero: fill_value must be a scalar or a tuple of length ", a.ndim(), "; got ",
                            fills.size(), " values, one of type ", to_string(fill.type())));
  }
  const Array arange_size = steps::arange(size);
  const Array unused = lax::ge(arange_size, lax::full({size}, sum(mask)));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = numpy::where(unused, fills[i], result[i]);
  return result;
}

Array flatnonzero(const Array& a, const NonzeroOptions& options) { return nonzero(ravel(a), options)[0]; }

Array argwhere(const Array& a, const NonzeroOptions& options) {
  const Arrays rows = nonzero(atleast_1d(a), options);
  const Array result = lax::stack(promote_dtypes(rows), 1);
  return a.ndim() == 0 ? lax::full({result.shape(0), 0}, 0, result.dtype()) : result;
}

Array compress(const Array& condition, const Array& a, const CompressOptions& options) {
  Array chosen = condition.astype(DType::bool_);
  if (chosen.ndim() != 1)
    throw ValueError(concat("compress: condition must be a 1D array, got ", to_string(chosen.type())));
  Array x = options.axis ? moveaxis(a, *options.axis, 0) : ravel(a);
  const Array beyond = steps::cut(chosen, x.shape(0), std::nullopt);
  chosen = steps::cut(chosen, 0, x.shape(0));
  x = steps::cut(x, 0, chosen.shape(0));
  const int64_t axis = options.axis.value_or(0);
  if (!options.size) {
    if (static_cast<bool>(any(beyond))) throw ValueError("compress: condition contains entries that are out of bounds");
    return moveaxis(x(chosen), 0, axis);
  }
  if (*options.size < 0 || *options.size > x.shape(0)) {
    throw ValueError(concat(
        "compress: size must be positive and not greater than the size of the array axis; got size=", *options.size,
        " for an axis of ", x.shape(0)));
  }
  Ints trailing;
  for (int64_t i = 1; i < x.ndim(); ++i) trailing.push_back(i);
  Array expanded = lax::expand_dims(chosen, trailing);
  x = numpy::where(expanded, x, options.fill_value.astype(x.dtype()));
  x = x(argsort(chosen, {.descending = true}));
  return moveaxis(steps::cut(x, 0, *options.size), 0, axis);
}

Array extract(const Array& condition, const Array& arr, const ExtractOptions& options) {
  Array flat = ravel(condition);
  return compress(flat, ravel(arr), {.size = options.size, .fill_value = options.fill_value});
}

}  // namespace capibara::jax::numpy
