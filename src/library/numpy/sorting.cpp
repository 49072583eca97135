// jax.numpy: sorting, partitioning and the positions of extreme elements.
#include <capibara/numpy/sorting.h>

#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "library/numpy/steps.h"

namespace capibara::jax::numpy {

namespace {

// The default integer dtype unless an axis is too long for it.
DType position_dtype(int64_t size) { return size > std::numeric_limits<int32_t>::max() ? DType::int64 : default_int(); }

using Extremum = Array (*)(const Array&, int64_t, DType);

Array extreme_position(const char* name, Extremum function, const Array& a, const ArgmaxOptions& options) {
  const Array x = options.axis ? a : ravel(a);
  const int64_t axis = canonical_axis(name, options.axis.value_or(0), x.ndim());
  if (x.shape(axis) == 0) {
    throw ValueError(concat("attempt to get ", name, " of an empty sequence: got ", to_string(a.type())));
  }
  const Array result = function(x, axis, default_int());
  if (!options.keepdims) return result;
  return options.axis ? lax::expand_dims(result, {axis}) : lax::reshape(result, Shape(a.shape().size(), 1));
}

Array extreme_number_position(const char* name, Extremum function, const Array& a, const ArgmaxOptions& options,
                              double nan_as) {
  if (!is_inexact(a.dtype())) return extreme_position(name, function, a, options);
  const Array nans = isnan(a);
  const Array position = extreme_position(name, function, numpy::where(nans, nan_as, a), options);
  const Axis axis = options.axis ? Axis(*options.axis) : Axis();
  return numpy::where(all(nans, {.axis = axis, .keepdims = options.keepdims}), -1, position);
}

struct Partition {
  Array x;  // its axis last
  int64_t axis, kth;
};

Partition prepare_partition(const char* name, const Array& a, int64_t kth, int64_t axis) {
  if (is_complex(a.dtype())) throw NotImplementedError(concat("jnp.", name, " for complex dtype is not implemented."));
  axis = canonical_axis(name, axis, a.ndim());
  return {swapaxes(a, axis, -1), axis, canonical_axis(name, kth, a.shape(axis))};
}

// Reverses the order. Unsigned integers are negated modulo their range, zero last.
Array reversed_order(const Array& x) { return is_unsigned(x.dtype()) ? -(x + 1) : -x; }

}  // namespace

Array argmax(const Array& a, const ArgmaxOptions& options) {
  return extreme_position("argmax", lax::argmax, a, options);
}
Array argmin(const Array& a, const ArgmaxOptions& options) {
  return extreme_position("argmin", lax::argmin, a, options);
}
Array nanargmax(const Array& a, const ArgmaxOptions& options) {
  return extreme_number_position("argmax", lax::argmax, a, options, -steps::infinity);
}
Array nanargmin(const Array& a, const ArgmaxOptions& options) {
  return extreme_number_position("argmin", lax::argmin, a, options, steps::infinity);
}

Array sort(const Array& a, const SortOptions& options) {
  const Array x = options.axis ? a : ravel(a);
  const int64_t axis = canonical_axis("sort", options.axis.value_or(0), x.ndim());
  const Array sorted = lax::sort(x, {.dimension = axis, .is_stable = options.stable});
  return options.descending ? flip(sorted, axis) : sorted;
}

Array argsort(const Array& a, const ArgsortOptions& options) {
  Array x = options.axis ? a : ravel(a);
  const int64_t axis = canonical_axis("argsort", options.axis.value_or(0), x.ndim());
  const DType dtype = options.dtype ? *options.dtype : position_dtype(x.shape(axis));
  Array positions = lax::broadcasted_iota(dtype, x.shape(), axis, x.type().sharding);
  // Sorting the reverse and reversing the result keeps equal elements in their order.
  if (options.descending && options.stable) {
    x = flip(x, axis);
    positions = flip(positions, axis);
  }
  const Array order = lax::sort_key_val(x, positions, {.dimension = axis, .is_stable = options.stable}).second;
  return options.descending ? flip(order, axis) : order;
}

Array lexsort(const std::vector<Array>& keys, int64_t axis) {
  if (keys.empty()) throw TypeError("lexsort: need sequence of keys with len > 0");
  for (const Array& key : keys) {
    if (key.shape() == keys[0].shape()) continue;
    throw ValueError(concat("lexsort: all keys need to be the same shape, got ", to_string(keys[0].type()), " and ",
                            to_string(key.type())));
  }
  if (keys[0].ndim() == 0) return lax::full({}, 0, default_int());
  axis = canonical_axis("lexsort", axis, keys[0].ndim());
  Arrays operands(keys.rbegin(), keys.rend());
  operands.push_back(lax::broadcasted_iota(position_dtype(keys[0].shape(axis)), keys[0].shape(), axis));
  return lax::sort(operands, {.dimension = axis, .num_keys = static_cast<int64_t>(keys.size())}).back();
}

Array sort_complex(const Array& a) {
  const Array sorted = lax::sort(a);
  return lax::convert_element_type(sorted, complex_dtype(inexact_dtype(sorted.dtype())));
}

Array partition(const Array& a, int64_t kth, int64_t axis) {
  const Partition p = prepare_partition("partition", a, kth, axis);
  const int64_t size = p.x.shape(-1);
  Array low = -lax::top_k(reversed_order(p.x), p.kth + 1).first;
  if (is_unsigned(p.x.dtype())) low = low - 1;
  const Array high = lax::top_k(p.x, size - p.kth - 1).first;
  return swapaxes(lax::concatenate({low, high}, p.x.ndim() - 1), p.axis, -1);
}

Array argpartition(const Array& a, int64_t kth, int64_t axis) {
  const Partition p = prepare_partition("argpartition", a, kth, axis);
  const int64_t size = p.x.shape(-1);
  const Array low = lax::top_k(reversed_order(p.x), p.kth + 1).second;
  // The rest are those not taken yet, in their original order.
  std::vector<Index> taken;
  for (int64_t i = 0; i + 1 < p.x.ndim(); ++i) taken.emplace_back(steps::positions(low.shape(), i));
  taken.emplace_back(low);
  const Array rest = IndexUpdate(lax::full(p.x.shape(), 1, default_float()), taken).set(0);
  const Array high = lax::top_k(rest, size - p.kth - 1).second;
  return swapaxes(lax::concatenate({low, high}, p.x.ndim() - 1), p.axis, -1);
}

}  // namespace capibara::jax::numpy
