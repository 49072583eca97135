// jax.scipy.stats: modes, ranks and standard errors of samples.
#include <capibara/numpy/manipulation.h>
#include <capibara/scipy/stats.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::stats {

using namespace terms;

namespace {

// True where a run of equal values begins, in values sorted along the last axis; NaNs are equal to each other.
Array run_begins(const Array& sorted) {
  const int64_t last = sorted.ndim() - 1, size = sorted.shape(last);
  Shape first = sorted.shape();
  first[static_cast<std::size_t>(last)] = 1;
  const Array later = lax::slice_in_dim(sorted, 1, size, 1, last);
  const Array earlier = lax::slice_in_dim(sorted, 0, size - 1, 1, last);
  const Array is_different = lax::ne(later, earlier), is_different_later = lax::ne(later, later);
  const Array differ = is_different & ~(is_different_later & lax::ne(earlier, earlier));
  return lax::concatenate({lax::full(first, true), differ}, last);
}

Array positions(const Array& x) { return lax::broadcasted_iota(default_int(), x.shape(), x.ndim() - 1); }

// For each position, the start of its run.
Array run_starts(const Array& begins) {
  const Array index = positions(begins);
  return lax::cummax(where(begins, index, lax::zeros_like(index)), {.axis = begins.ndim() - 1});
}

// The element at an index along the last axis, one per row.
Array pick(const Array& x, const Array& index) {
  const Array positions_x = positions(x);
  const Array hit = positions_x == lax::expand_dims(index, {index.ndim()});
  const Array nothing = lax::full_like(x, 0);
  const Array chosen = where(hit, x, nothing);
  // At most one element is nonzero; a sum would not work for booleans.
  return is_bool(x.dtype()) ? lax::reduce_or(chosen, {{x.ndim() - 1}}) : lax::reduce_sum(chosen, {{x.ndim() - 1}});
}

Array sorted_last(const Array& x) {
  return lax::sort(x, {.dimension = x.ndim() - 1, .is_stable = true, .num_keys = 1});
}

// The ranks along the last axis.
Array ranks(const Array& x, const std::string& method) {
  const int64_t last = x.ndim() - 1, size = x.shape(last);
  const lax::SortOptions along{.dimension = last, .is_stable = true, .num_keys = 1};
  const auto [sorted, order] = lax::sort_key_val(x, positions(x), along);
  Array rank;
  if (method == "ordinal") {
    rank = positions(x) + 1;
  } else {
    const Array begins = run_begins(sorted);
    const Array starts = run_starts(begins);
    if (method == "dense") {
      rank = lax::cumsum(lax::convert_element_type(begins, default_int(), false), {.axis = last});
    } else if (method == "min") {
      rank = starts + 1;
    } else {
      // In reverse, a run begins where the next one ends.
      const Array from_behind = lax::rev(run_starts(run_begins(lax::rev(sorted, {last}))), {last});
      const Array ends = size - from_behind;
      rank = method == "max" ? ends : 0.5 * lax::convert_element_type(starts + 1 + ends, default_float(), false);
    }
  }
  return lax::convert_element_type(lax::sort_key_val(order, rank, along).second, default_float(), false);
}

}  // namespace

std::pair<Array, Array> mode(const Array& a, const ModeOptions& options) {
  Array x = a.ndim() == 0 ? lax::reshape(a, {1}) : a;
  Shape shape = x.shape();
  if (options.axis) {
    const auto axis = static_cast<std::size_t>(canonical_axis("mode", *options.axis, x.ndim()));
    x = numpy::moveaxis(x, static_cast<int64_t>(axis), -1);
    if (options.keepdims)
      shape[axis] = 1;
    else
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  } else {
    x = lax::reshape(x, {x.size()});
    shape = options.keepdims ? Shape(shape.size(), 1) : Shape();
  }
  if (x.shape(-1) == 0) {
    return {lax::full(shape, not_a_number, default_float()), lax::full(shape, 0, default_float())};
  }
  const Array sorted = sorted_last(x), starts = run_starts(run_begins(sorted));
  const Array lengths = positions(sorted) - starts + 1;
  const Array best = lax::argmax(lengths, lengths.ndim() - 1, default_int());
  const Array value = pick(sorted, pick(starts, best)), count = pick(lengths, best);
  return {lax::reshape(value, shape), lax::reshape(count, shape)};
}

Array rankdata(const Array& a, const RankdataOptions& options) {
  const std::string& method = options.method;
  if (method != "average" && method != "min" && method != "max" && method != "dense" && method != "ordinal") {
    throw ValueError(
        concat("rankdata: method must be 'average', 'min', 'max', 'dense' or 'ordinal', got '", method, "'"));
  }
  Array x = a;
  int64_t axis = 0;
  if (options.axis) {
    axis = canonical_axis("rankdata", *options.axis, a.ndim());
    x = numpy::moveaxis(a, axis, -1);
  } else {
    x = lax::reshape(a, {a.size()});
  }
  if (x.size() == 0) return lax::empty(options.axis ? a.shape() : x.shape(), default_float());
  Array rank = ranks(x, method);
  if (is_floating(x.dtype())) {
    const Array any_nan = lax::reduce_or(isnan(x), {{x.ndim() - 1}});
    Array expanded = lax::expand_dims(any_nan, {x.ndim() - 1});
    rank = where(expanded, constant(rank, not_a_number), rank);
  }
  return options.axis ? numpy::moveaxis(rank, -1, axis) : rank;
}

Array sem(const Array& a, const SemOptions& options) {
  const Array x = promote_inexact("sem", a);
  const numpy::Axis axis = options.axis ? numpy::Axis(*options.axis) : numpy::Axis();
  const numpy::VarOptions spread{.axis = axis, .ddof = options.ddof, .keepdims = options.keepdims};
  if (options.nan_policy == "propagate") {
    double size = 1;
    for (int64_t i : axis.resolve("sem", x.ndim())) size *= static_cast<double>(x.shape(i));
    Array std_x = numpy::std(x, spread);
    return std_x / constant(x, std::sqrt(size));
  }
  if (options.nan_policy == "omit") {
    const Array number = sum(~isnan(x), {.axis = axis, .dtype = default_float(), .keepdims = options.keepdims});
    Array nanstd_x = numpy::nanstd(x, spread);
    return nanstd_x / lax::convert_element_type(lax::sqrt(number), x.dtype(), false);
  }
  throw ValueError(concat("sem: nan_policy must be 'propagate' or 'omit', got '", options.nan_policy, "'"));
}

}  // namespace capibara::jax::scipy::stats
