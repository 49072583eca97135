// Attention over a sequence that is split over devices: flash_attention(sequence_parallel=True).
#pragma once

#include <capibara/placement.h>

#include <optional>
#include <string>

#include "kernels/attention/spec.h"

namespace capibara::kernels {

// The mesh axis over which the sequences of queries, keys and values are split.
struct RingPlace {
  std::string axis;
  std::optional<NamedSharding> devices;  // the mesh, without a spec; nullopt if shard_map has bound the axis
  PartitionSpec query;                   // the split of [batch, heads, length, head_dim] over it
};

// The axis that splits the operands' sequences; nullopt if they are known not to be split. `axis` is the one that the
// caller names, or empty. Raises ValueError if operands differ, or if a trace hides how they are split.
std::optional<RingPlace> ring_place(const AttentionOperands& operands, const std::string& axis);

// Queries stay on their devices; keys and values rotate around the axis, one block of each at a time. Results
// accumulate in float32, also in the reverse derivative, for which only the operands, the result and one number per
// row are saved.
Array ring_attention(const RingPlace& place, const AttentionOperands& operands, const Attrs& attrs);

}  // namespace capibara::kernels
