// Parts of the heads, whose slopes of logits are stored until the slopes of queries and of the bias are made of them.
#pragma once

#include "backends/cuda/attention_problem.h"

namespace capibara::cuda::attention {

// The tile of a block of threads: of all heads, or groups, of a part the longest start first; where it has all of them,
// one follows the other, so that the cache has its rows.
struct TileOfPart {
  int tile, batch, head;  // the head counts from the first of the part
};
inline __device__ TileOfPart tile_of_part(int block, int tiles, int batch, int heads, int part) {
  const int rest = block / batch;
  if (part < heads) return {rest / part, block % batch, rest % part};
  return {rest % tiles, block % batch, rest / tiles};
}

// The number of a head among those whose slopes of logits are stored.
inline __device__ int slope_number(const Problem& p, int batch, int head) {
  return (batch * p.part_groups - p.first_group) * p.per_group() + head;
}

}  // namespace capibara::cuda::attention
