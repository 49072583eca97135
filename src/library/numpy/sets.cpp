// jax.numpy: union, difference and intersection of sets given as arrays, and membership.
#include <capibara/numpy/sets.h>

#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/sorting.h>

#include "lax/operators/promote.h"
#include "library/numpy/sets.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

Array true_array() { return lax::full({1}, Array(true)); }

Array differs_from_previous(const Array& x) {
  Array cut_x = steps::cut(x, 1, std::nullopt);
  return cut_x != steps::cut(x, 0, -1);
}
Array equals_previous(const Array& x) {
  Array cut_x = steps::cut(x, 1, std::nullopt);
  return cut_x == steps::cut(x, 0, -1);
}

// True for the flat elements that are among the test elements.
Array contained(const Array& element, const Array& tested, const IsinOptions& options) {
  const Arrays both = promote_dtypes({element, tested});
  Array x = ravel(both[0]);
  Array y = ravel(both[1]);
  if (x.size() == 0 || y.size() == 0) return lax::full(x.shape(), Array(options.invert));
  if (options.method == "auto" || options.method == "compare_all") {
    const Array column = lax::expand_dims(x, {1}), row = lax::expand_dims(y, {0});
    return options.invert ? all(column != row, {.axis = 1}) : any(column == row, {.axis = 1});
  }
  if (options.method == "binary_search") {
    y = lax::sort(y);
    const Array nearest = y(searchsorted(y, x));
    return options.invert ? x != nearest : x == nearest;
  }
  if (options.method != "sort") {
    throw ValueError(concat("isin: method='", options.method,
                            "' is not implemented; options are 'compare_all', 'binary_search', 'sort', and 'auto'"));
  }
  Array inverse;
  if (!options.assume_unique) {
    const UniqueResult distinct = unique(x, {.return_inverse = true, .size = x.size(), .fill_value = max(y)});
    x = distinct.values;
    inverse = distinct.inverse_indices;
  }
  Array joined = lax::concatenate({x, y}, 0);
  const auto [sorted, order] = lax::sort_key_val(joined, steps::arange(x.size() + y.size()));
  const Array next = options.invert ? differs_from_previous(sorted) : equals_previous(sorted);
  const Array result =
      lax::full(x.shape(), Array(options.invert)).at(steps::cut(order, 0, -1)).set(next, {.mode = "drop"});
  return inverse.defined() ? result(inverse) : result;
}

struct Joined {
  Array elements;  // the distinct ones of both sets, then unused entries
  Array first_count, count;
  Array first_indices, second_indices;
};

// The distinct elements of the first set, followed by those of the second.
Joined join_distinct(const Array& a, const Array& b, const UniqueOptions& options) {
  UniqueOptions of_a = options, of_b = options;
  of_a.size = a.size();
  of_b.size = b.size();
  const sets::DistinctSlices first = sets::distinct_slices(a, 0, of_a), second = sets::distinct_slices(b, 0, of_b);
  Array joined = lax::full({a.size() + b.size()}, 0, a.dtype());
  joined = lax::dynamic_update_slice(joined, first.values.astype(a.dtype()), {Array(0)});
  joined = lax::dynamic_update_slice(joined, second.values.astype(a.dtype()), {first.true_size});
  return {joined, first.true_size, first.true_size + second.true_size, first.indices, second.indices};
}

// Replaces entries from `count` on by the fill value, by default the smallest of the others.
Array fill_unused(const Array& values, const Array& count, const std::optional<Array>& fill_value) {
  const Array used = steps::arange(values.shape(0)) < count;
  if (fill_value) return numpy::where(used, values, *fill_value);
  const Array with_greatest = numpy::where(used, values, max(values));
  return numpy::where(used, with_greatest, min(with_greatest));
}

Array filled_read(const Array& x, const Array& at, int64_t fill) {
  return x.at(at).get({.mode = "fill", .fill_value = Array(fill)});
}

}  // namespace

Array isin(const Array& element, const Array& test_elements, const IsinOptions& options) {
  return lax::reshape(contained(element, test_elements, options), element.shape());
}

Array union1d(const Array& ar1, const Array& ar2, const SizeOptions& options) {
  if (!options.size) {
    steps::require_values("union1d", "ar1", ar1);
    steps::require_values("union1d", "ar2", ar2);
  }
  return unique(concatenate({ravel(ar1), ravel(ar2)}), {.size = options.size, .fill_value = options.fill_value}).values;
}

Array setdiff1d(const Array& ar1, const Array& ar2, const SetOptions& options) {
  Array x = ravel(ar1);
  if (!options.size) steps::require_values("setdiff1d", "ar1", ar1);
  const Array fill = lax::convert_element_type(options.fill_value.value_or(Array(0)), x.dtype(), x.weak_type());
  if (x.size() == 0) return broadcast_to("setdiff1d", fill, {options.size.value_or(0)});
  if (!options.assume_unique) {
    std::optional<int64_t> size = options.size;
    if (size.value_or(0) != 0) size = x.size();
    x = unique(x, {.size = size}).values;
  }
  Array outside = contained(x, ar2, {.assume_unique = options.assume_unique, .invert = true});
  if (!options.size) return x(outside);
  if (!options.assume_unique) {
    // The distinct elements are padded with the first one.
    const Array distinct = Array(x.size() + 1) - sum(x == x(0));
    outside = numpy::where(steps::arange(x.size()) < distinct, outside, Array(false));
  }
  const Array chosen = x(flatnonzero(outside, {.size = options.size}));
  Array arange_steps = steps::arange(*options.size);
  return numpy::where(arange_steps < sum(outside), chosen, fill);
}

Array setxor1d(const Array& ar1, const Array& ar2, const SetOptions& options) {
  const Arrays both = promote_dtypes({ravel(ar1), ravel(ar2)});
  if (!options.size) {
    Array a = both[0], b = both[1];
    if (!options.assume_unique) {
      a = unique(a).values;
      b = unique(b).values;
    }
    Array joined = concatenate({a, b});
    if (joined.size() == 0) return joined;
    joined = lax::sort(joined);
    const Array edges = lax::concatenate({true_array(), differs_from_previous(joined), true_array()}, 0);
    Array cut_edges = steps::cut(edges, 1, std::nullopt);
    return joined(cut_edges & steps::cut(edges, 0, -1));
  }
  const int64_t total = both[0].size() + both[1].size(), size = *options.size;
  if (total == 0) return fill_unused(lax::full({size}, 0, both[0].dtype()), Array(0), options.fill_value);
  Array sorted, edges;  // one more edge than elements
  if (options.assume_unique) {
    sorted = lax::sort(lax::concatenate({both[0], both[1]}, 0));
    edges = lax::concatenate({true_array(), differs_from_previous(sorted), true_array()}, 0);
  } else {
    const Joined joined = join_distinct(both[0], both[1], {});
    const Array arange_steps = steps::arange(total + 1);
    const Array used = arange_steps < joined.count + 1;
    sorted = lax::sort(Arrays{~steps::cut(used, 1, std::nullopt), joined.elements}, {.num_keys = 2})[1];
    const Array changes =
        lax::concatenate({true_array(), differs_from_previous(sorted), lax::full({1}, Array(false))}, 0);
    edges = used & changes.at(joined.count).set(Array(true));
  }
  const Array cut_value = steps::cut(edges, 1, std::nullopt);
  const Array single = cut_value & steps::cut(edges, 0, -1);
  const Array at = flatnonzero(single, {.size = size, .fill_value = {Array(total)}});
  Array filled_read_sorted = filled_read(sorted, at, 0);
  return fill_unused(filled_read_sorted, sum(single), options.fill_value);
}

namespace {

Intersection intersect_sized(const Array& a, const Array& b, const SetOptions& options, bool with_indices) {
  const int64_t total = a.size() + b.size(), size = *options.size;
  Array sorted, order, used;
  Joined joined;
  if (options.assume_unique) {
    const Arrays by_value = lax::sort(Arrays{lax::concatenate({a, b}, 0), steps::arange(total)});
    sorted = by_value[0];
    order = by_value[1];
    used = lax::full({total}, Array(true));
    joined.first_count = lax::full({}, Array(a.size()), default_int());
  } else {
    joined = join_distinct(a, b, {.return_index = true, .fill_value = Array(0)});
    used = steps::arange(total) < joined.count;
    const Arrays by_value = lax::sort(Arrays{~used, joined.elements, steps::arange(total)}, {.num_keys = 2});
    sorted = by_value[1];
    order = by_value[2];
  }
  Intersection result;
  Array count = lax::full({}, 0, default_int()), at = steps::arange(0);
  result.values = lax::full({size}, 0, a.dtype());
  if (total != 0) {
    const Array equals_previous_sorted = equals_previous(sorted);
    const Array repeated = equals_previous_sorted & steps::cut(used, 1, std::nullopt);
    count = sum(repeated);
    at = flatnonzero(repeated, {.size = size, .fill_value = {Array(total)}});
    result.values = filled_read(sorted, at, 0);
  }
  result.values = fill_unused(result.values, count, options.fill_value);
  if (!with_indices) return result;
  auto indices = [&](const Array& positions, int64_t limit, const Array& distinct) {
    const Array kept = numpy::where(steps::arange(positions.shape(0)) < count, positions, Array(limit));
    return distinct.defined() ? filled_read(distinct, kept, limit) : kept;
  };
  result.indices1 = indices(filled_read(order, at, a.size()), a.size(), joined.first_indices);
  result.indices2 = indices(filled_read(order, at + 1, b.size()) - joined.first_count, b.size(), joined.second_indices);
  return result;
}

Intersection intersect(const Array& ar1, const Array& ar2, const SetOptions& options, bool with_indices) {
  const Arrays both = promote_dtypes({ar1, ar2});
  Array a = ravel(both[0]), b = ravel(both[1]);
  if (options.size) return intersect_sized(a, b, options, with_indices);
  Array first, second;
  if (!options.assume_unique) {
    const UniqueResult of_a = unique(a, {.return_index = true}), of_b = unique(b, {.return_index = true});
    a = of_a.values;
    b = of_b.values;
    first = of_a.indices;
    second = of_b.indices;
  }
  const Array joined = lax::concatenate({a, b}, 0);
  const auto [sorted, order] = lax::sort_key_val(joined, lax::iota(DType::int32, joined.size()));
  const Array repeated = equals_previous(sorted);
  Intersection result{steps::cut(sorted, 0, -1)(repeated), steps::cut(order, 0, -1)(repeated),
                      steps::cut(order, 1, std::nullopt)(repeated) - Array(a.size())};
  if (first.defined()) {
    result.indices1 = first(result.indices1);
    result.indices2 = second(result.indices2);
  }
  return result;
}

}  // namespace

Intersection intersect1d_with_indices(const Array& ar1, const Array& ar2, const SetOptions& options) {
  return intersect(ar1, ar2, options, true);
}

Array intersect1d(const Array& ar1, const Array& ar2, const SetOptions& options) {
  return intersect(ar1, ar2, options, false).values;
}

}  // namespace capibara::jax::numpy
