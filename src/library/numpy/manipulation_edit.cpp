// jax.numpy: inserting and deleting elements of an array.
#include <capibara/indexing.h>
#include <capibara/lax.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/sorting.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"
#include "library/numpy/indexing_steps.h"

namespace capibara::jax::numpy {

namespace {

// x[:, ..., index] with the index at this axis.
std::vector<Index> at_axis(int64_t axis, Index index) {
  std::vector<Index> places(static_cast<std::size_t>(axis), Index(slice()));
  places.push_back(std::move(index));
  return places;
}

}  // namespace

Array insert(const Array& arr, const Array& obj, const Array& values, const InsertOptions& options) {
  Array x = options.axis ? arr : ravel(arr);
  const int64_t axis = canonical_axis("insert", options.axis.value_or(0), x.ndim());
  Array places = obj;
  if (places.ndim() > 1) {
    throw ValueError(concat("insert: obj must be a slice, a number or one-dimensional, got ", to_string(obj.type())));
  }
  if (!is_integer(places.dtype()))
    throw ValueError(concat("insert: obj must be integers, got ", to_string(obj.type())));
  Array updates = lax::convert_element_type(values, x.dtype(), false);
  if (updates.ndim() < x.ndim()) updates = lax::broadcast_to_rank(updates, x.ndim());
  if (places.size() == 1) {
    if (places.ndim() == 0) updates = moveaxis(updates, 0, axis);
    places = lax::full({updates.shape(axis)}, reshape(places, {}));
  }
  const int64_t before = x.shape(axis);
  const int64_t added = lax::broadcast_shapes({places.shape(), {updates.shape(axis)}})[0];
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(axis)] += added;

  // Each new element shifts by the number of new ones before it; the old ones fill the remaining positions.
  Array is_less = places < 0;
  places = clip(where(is_less, places + before, places), {.min = 0, .max = before});
  Array order = lax::sort_key_val(places, lax::iota(DType::int32, places.size()), {.dimension = 0}).second;
  Array targets = places.at(order).add(lax::iota(places.dtype(), added));
  Array is_old = lax::ones(sample_type(DType::bool_, {before + added})).at(targets).set(false);
  Array old_targets = nonzero(is_old, {.size = before})[0];
  Array out = lax::zeros(x.type().with_shape(shape));
  out = IndexUpdate(out, at_axis(axis, targets)).set(updates);
  return IndexUpdate(out, at_axis(axis, old_targets)).set(x);
}

namespace {

// The remaining elements, for indices known to be distinct: each position is the number of kept elements before
// it, plus the removed ones before it.
Array delete_unique(const Array& x, const Array& obj, int64_t axis) {
  const int64_t size = x.shape(axis);
  Array removed = ravel(obj);
  Array is_less = removed < 0;
  removed = clip(where(is_less, removed + size, removed), {.min = 0, .max = size});
  removed = lax::sort(removed, {.dimension = 0});
  removed = removed - lax::iota(removed.dtype(), removed.size());
  Array kept = lax::iota(removed.dtype(), size - removed.size());
  Array expanded = lax::expand_dims(kept, {0}), passed = expanded >= lax::expand_dims(removed, {1});
  kept = kept + lax::reduce_sum(lax::convert_element_type(passed, kept.dtype(), false), {{0}});
  return index(x, at_axis(axis, kept));
}

}  // namespace

Array delete_(const Array& arr, const Array& obj, const DeleteOptions& options) {
  Array x = options.axis ? arr : ravel(arr);
  const int64_t axis = canonical_axis("delete", options.axis.value_or(0), x.ndim());
  const int64_t size = x.shape(axis);
  if (obj.ndim() == 0 && is_integer(obj.dtype()) && !obj.is_tracer()) {
    const int64_t place = canonical_axis("delete", obj.item<int64_t>(), size);
    return concatenate({lax::slice_in_dim(x, 0, place, 1, axis), lax::slice_in_dim(x, place + 1, size, 1, axis)},
                       {.axis = axis});
  }
  if (is_integer(obj.dtype()) && options.assume_unique_indices) return delete_unique(x, obj, axis);
  if (obj.is_tracer()) {
    throw ConcretizationTypeError(
        "delete: obj must be concrete, since the result's size depends on it; or pass assume_unique_indices=True");
  }
  std::vector<bool> keep(static_cast<std::size_t>(size), true);
  if (is_integer(obj.dtype())) {
    for (int64_t place : obj.to_vector<int64_t>()) {
      if (place < -size || place >= size) {
        throw IndexError(concat("delete: index ", place, " is out of bounds for axis ", axis, " with size ", size));
      }
      keep[static_cast<std::size_t>(place < 0 ? place + size : place)] = false;
    }
  } else if (is_bool(obj.dtype())) {
    if (obj.shape() != Shape{size}) {
      throw ValueError(concat("delete: a boolean obj must have shape (", size, ",), got ", to_string(obj.type())));
    }
    keep = obj.to_vector<bool>();
    keep.flip();
  } else {
    throw ValueError(concat("delete: obj must be integers or booleans, got ", to_string(obj.type())));
  }
  return index(x, at_axis(axis, capibara::array<bool>(keep)));
}

Array trim_zeros(const Array& filt, const TrimZerosOptions& options) {
  if (filt.is_tracer()) {
    throw ConcretizationTypeError("trim_zeros: filt must be concrete, since the result's size depends on it");
  }
  const Ints axes = options.axis.resolve("trim_zeros", filt.ndim());
  const bool front = options.trim.find_first_of("fF") != std::string::npos;
  const bool back = options.trim.find_first_of("bB") != std::string::npos;
  if (axes.empty() || !(front || back)) return filt;
  Array nonzeros = lax::convert_element_type(filt, DType::bool_, false);
  std::vector<Index> window;
  for (int64_t axis = 0; axis < filt.ndim(); ++axis) {
    if (!contains(axes, axis)) {
      window.emplace_back(slice());
      continue;
    }
    const std::vector<bool> mask = lax::reduce_or(nonzeros, {other_dims(filt.ndim(), {axis})}).to_vector<bool>();
    const auto first = std::find(mask.begin(), mask.end(), true);
    if (first == mask.end()) {
      window.emplace_back(slice(0, 0));
      continue;
    }
    const auto last = std::find(mask.rbegin(), mask.rend(), true);
    window.emplace_back(slice(front ? first - mask.begin() : 0, back ? mask.rend() - last : filt.shape(axis)));
  }
  return index(filt, window);
}

}  // namespace capibara::jax::numpy
