// jax.numpy: distinct elements of an array, by sorting.
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

struct Sorted {
  Array slices;     // along the first axis
  Array is_first;   // true for the first slice of each run of equal ones
  Array positions;  // in the input
};

Array differ(const Array& x, const Array& y, bool equal_nan) {
  const Array unequal = lax::ne(x, y);
  if (!is_inexact(x.dtype()) || !equal_nan) return unequal;
  Array is_nan = isnan(x);
  return unequal & ~(is_nan & isnan(y));
}

Sorted sort_slices(const Array& ar, int64_t axis, bool equal_nan) {
  Array x = moveaxis(ar, axis, 0);
  if (is_complex(x.dtype())) x = jax::numpy::where(isnan(x), steps::constant(x, steps::nan), x);
  const int64_t count = x.shape(0);
  int64_t width = 1;
  for (int64_t i = 1; i < x.ndim(); ++i) width *= x.shape(i);
  if (width == 0) {
    // Slices without elements are all equal.
    Shape one = x.shape();
    one[0] = 1;
    return {lax::full(one, 0, x.dtype()), lax::full({1}, Array(false)), lax::full({1}, 0, default_int())};
  }
  if (count == 0) return {x, lax::full({0}, Array(false)), lax::full({0}, 0, default_int())};
  const Array columns = lax::rev(lax::transpose(lax::reshape(x, {count, width}), {1, 0}), {0});
  const Array positions = lexsort(lax::unstack(columns, 0));
  x = x(positions);
  Ints rest;
  for (int64_t i = 1; i < x.ndim(); ++i) rest.push_back(i);
  const Array cut_x = steps::cut(x, 1, std::nullopt);
  const Array changes = any(differ(cut_x, steps::cut(x, 0, -1), equal_nan), {.axis = rest});
  return {x, lax::concatenate({lax::full({1}, Array(true)), changes}, 0), positions};
}

}  // namespace

}  // namespace capibara::jax::numpy

namespace capibara::sets {

namespace lax = jax::lax;
using namespace jax::numpy;

DistinctSlices distinct_slices(const Array& ar, int64_t axis, const UniqueOptions& options) {
  axis = canonical_axis("unique", axis, ar.ndim());
  const int64_t length = ar.shape(axis);
  if (length == 0 && options.size.value_or(0) != 0 && !options.fill_value) {
    throw ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value must be specified");
  }
  const Sorted sorted = sort_slices(ar, axis, options.equal_nan);
  const bool any_elements = sorted.slices.size() != 0;
  if (!options.size) steps::require_values("unique", "ar", sorted.is_first);
  const Array first = flatnonzero(sorted.is_first, {.size = options.size});
  DistinctSlices result;
  result.true_size = sum(sorted.is_first);
  Array values = any_elements ? sorted.slices(first) : sorted.slices;
  if (options.size && options.fill_value) {
    const Array fill = options.fill_value->astype(values.dtype());
    if (values.shape(0) != 0) {
      Ints trailing;
      for (int64_t i = 1; i < values.ndim(); ++i) trailing.push_back(i);
      const Array used = steps::arange(*options.size) < result.true_size;
      values = jax::numpy::where(lax::expand_dims(used, trailing), values, fill);
    } else {
      Shape shape = values.shape();
      shape[0] = *options.size;
      values = broadcast_to("unique", fill, shape);
    }
  }
  result.values = moveaxis(values, 0, axis);
  if (options.return_index) result.indices = any_elements ? sorted.positions(first) : sorted.positions;
  if (options.return_inverse) {
    result.inverse_indices = lax::full({any_elements ? sorted.is_first.shape(0) : length}, 0, default_int());
    if (any_elements) {
      result.inverse_indices = result.inverse_indices.at(sorted.positions).set(cumsum(sorted.is_first, {}) - 1);
    }
  }
  if (options.return_counts) {
    if (!any_elements) {
      result.counts = lax::full({length ? 1 : 0}, Array(length), default_int());
    } else {
      // From the start of each run to the next; for the last one to the end.
      const int64_t all = sorted.is_first.shape(0);
      std::optional<int64_t> ends;
      if (options.size) ends = *options.size + 1;
      Array begin = flatnonzero(sorted.is_first, {.size = ends});
      const Array end = lax::full({1}, Array(all), default_int());
      if (options.size) {
        const Array later = steps::cut(begin, 1, std::nullopt);
        begin = lax::concatenate({steps::cut(begin, 0, 1), jax::numpy::where(later, later, Array(all))}, 0);
      } else {
        begin = lax::concatenate({begin, end}, 0);
      }
      Array cut_begin = steps::cut(begin, 1, std::nullopt);
      result.counts = lax::sub(cut_begin, steps::cut(begin, 0, -1));
    }
  }
  return result;
}

}  // namespace capibara::sets

namespace capibara::jax::numpy {

UniqueResult unique(const Array& ar, const UniqueOptions& options) {
  Array x = options.axis ? ar : ravel(ar);
  if (!options.size) {
    // Only the values matter, as in jax: a result of unknown size has no derivative.
    steps::require_values("unique", "ar", ar);
    x = lax::stop_gradient(x);
  }
  const sets::DistinctSlices found = sets::distinct_slices(x, options.axis.value_or(0), options);
  UniqueResult result{found.values, found.indices, found.inverse_indices, found.counts};
  if (options.return_inverse && !options.axis) {
    result.inverse_indices = lax::reshape(result.inverse_indices, ar.shape());
  }
  return result;
}

UniqueResult unique_all(const Array& x, const SizeOptions& options) {
  return unique(x, {.return_index = true,
                    .return_inverse = true,
                    .return_counts = true,
                    .equal_nan = false,
                    .size = options.size,
                    .fill_value = options.fill_value});
}

UniqueResult unique_counts(const Array& x, const SizeOptions& options) {
  return unique(x, {.return_counts = true, .equal_nan = false, .size = options.size, .fill_value = options.fill_value});
}

UniqueResult unique_inverse(const Array& x, const SizeOptions& options) {
  return unique(x,
                {.return_inverse = true, .equal_nan = false, .size = options.size, .fill_value = options.fill_value});
}

Array unique_values(const Array& x, const SizeOptions& options) {
  return unique(x, {.equal_nan = false, .size = options.size, .fill_value = options.fill_value}).values;
}

}  // namespace capibara::jax::numpy
