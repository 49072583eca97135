// jax.ops: segment reductions as scatters into rows filled with the identity.
#include <capibara/ops.h>

#include <limits>

#include "lax/operators/promote.h"

namespace capibara::jax::ops {

namespace {

struct Reduction {
  const char* name;
  Array (IndexUpdate::*update)(const Array&, const UpdateOptions&) const;
  Array (*reduce)(const Array&, const lax::ReduceOptions&);
  bool rounds;  // sums and products of 16-bit floats are accumulated in 32 bits
};

int64_t segment_count(const Reduction& reduction, const Array& segment_ids, const SegmentOptions& options) {
  int64_t count = 0;
  if (options.num_segments) {
    count = *options.num_segments;
  } else {
    if (segment_ids.size() == 0) {
      throw ValueError(concat(reduction.name, ": num_segments is needed where segment_ids is empty, got ",
                              to_string(segment_ids.type())));
    }
    if (segment_ids.is_tracer()) {
      throw ConcretizationTypeError(concat(reduction.name, ": num_segments is needed where segment_ids is traced, got ",
                                           to_string(segment_ids.type())));
    }
    Ints all;
    for (int64_t axis = 0; axis < segment_ids.ndim(); ++axis) all.push_back(axis);
    count = lax::reduce_max(segment_ids, {.axes = all}).item<int64_t>() + 1;
  }
  if (count < 0) throw ValueError(concat(reduction.name, ": num_segments must be non-negative, got ", count));
  return count;
}

Array run(const Reduction& reduction, const Array& identity, const Array& data, const Array& segment_ids,
          const SegmentOptions& options) {
  const int64_t count = segment_count(reduction, segment_ids, options);
  const UpdateOptions update = {.mode = options.mode,
                                .indices_are_sorted = options.indices_are_sorted,
                                .unique_indices = options.unique_indices,
                                .wrap_negative_indices = false};
  Shape shape = {count};
  if (data.ndim() > 0) shape.insert(shape.end(), data.shape().begin() + 1, data.shape().end());
  if (!options.bucket_size) {
    const Array rows = lax::full(shape, identity, data.dtype());
    return (rows.at(segment_ids).*reduction.update)(data, update);
  }
  const int64_t bucket = *options.bucket_size;
  shape.insert(shape.begin(), (segment_ids.size() + bucket - 1) / bucket);
  const Array rows = lax::full(shape, identity, data.dtype());
  const Array positions = lax::iota(DType::int32, segment_ids.shape(0));
  const Array buckets = lax::div(positions, lax::full({segment_ids.shape(0)}, Array(bucket), DType::int32));
  Array partial = (rows.at(buckets, lax::expand_dims(segment_ids, {0})).*reduction.update)(data, update);
  const bool narrow = reduction.rounds && is_floating(data.dtype()) && bits(data.dtype()) <= 16;
  if (narrow) partial = lax::convert_element_type(partial, DType::float32);
  return lax::convert_element_type(reduction.reduce(partial, {.axes = {0}}), data.dtype(), false);
}

// The largest value of a dtype, or the smallest.
Array extreme(DType dtype, bool greatest) {
  if (is_bool(dtype)) return Array(greatest);
  if (is_unsigned(dtype)) return greatest ? Array(iinfo(dtype).max) : Array(0);
  if (is_signed(dtype)) return greatest ? Array(static_cast<int64_t>(iinfo(dtype).max)) : Array(iinfo(dtype).min);
  const double infinity = std::numeric_limits<double>::infinity();
  return Array(greatest ? infinity : -infinity);
}

}  // namespace

Array segment_sum(const Array& data, const Array& segment_ids, const SegmentOptions& options) {
  return run({"segment_sum", &IndexUpdate::add, lax::reduce_sum, true}, Array(0), data, segment_ids, options);
}

Array segment_prod(const Array& data, const Array& segment_ids, const SegmentOptions& options) {
  return run({"segment_prod", &IndexUpdate::multiply, lax::reduce_prod, true}, Array(1), data, segment_ids, options);
}

Array segment_max(const Array& data, const Array& segment_ids, const SegmentOptions& options) {
  return run({"segment_max", &IndexUpdate::max, lax::reduce_max, false}, extreme(data.dtype(), false), data,
             segment_ids, options);
}

Array segment_min(const Array& data, const Array& segment_ids, const SegmentOptions& options) {
  return run({"segment_min", &IndexUpdate::min, lax::reduce_min, false}, extreme(data.dtype(), true), data, segment_ids,
             options);
}

}  // namespace capibara::jax::ops
