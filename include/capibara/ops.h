// jax.ops: reductions of rows that share a segment number.
#pragma once

#include <capibara/lax.h>

#include <optional>
#include <string>

namespace capibara::jax::ops {

struct SegmentOptions {
  std::optional<int64_t> num_segments;  // by default the largest number plus one, which requires a concrete value
  bool indices_are_sorted = false;
  bool unique_indices = false;
  std::optional<int64_t>
      bucket_size;   // rows reduced together before the buckets are reduced: this keeps rounding errors small
  std::string mode;  // how numbers out of range are handled; by default their rows are dropped
};
// The sums of the rows with equal segment numbers.
// Row i of the result reduces the rows of data with segment number i; segments without rows hold the identity.
Array segment_sum(const Array& data, const Array& segment_ids, const SegmentOptions& options = {});
// The products of the rows with equal segment numbers.
Array segment_prod(const Array& data, const Array& segment_ids, const SegmentOptions& options = {});
// The maxima of the rows with equal segment numbers.
Array segment_max(const Array& data, const Array& segment_ids, const SegmentOptions& options = {});
// The minima of the rows with equal segment numbers.
Array segment_min(const Array& data, const Array& segment_ids, const SegmentOptions& options = {});

}  // namespace capibara::jax::ops
