// Attention over a sequence that is split over devices: what flash_attention(sequence_parallel=True) does.
#pragma once

#include <capibara/placement.h>

#include <optional>
#include <string>

#include "kernels/attention/spec.h"

namespace capibara::kernels {

// The mesh axis over which the sequences of queries, keys and values are split.
struct RingPlace {
  std::string axis;
  std::optional<NamedSharding> devices;  // the mesh, without a specification; none where shard_map has bound the axis
  PartitionSpec query;                   // how [batch, heads, length, head_dim] is split over it
};

// Where the operands are split along their sequences; nothing where they are known not to be. `axis` is the one that
// the caller names, or empty. ValueError where operands differ, and where a trace hides how they are split.
std::optional<RingPlace> ring_place(const AttentionOperands& operands, const std::string& axis);

// Queries stay on their devices; keys and values pass around the axis, one block of each at a time. Results and their
// sums are kept in float32, and so are those of the reverse derivative, for which only the operands, the result and one
// number for each row are kept.
Array ring_attention(const RingPlace& place, const AttentionOperands& operands, const Attrs& attrs);

}  // namespace capibara::kernels
