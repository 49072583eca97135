// Parts of the heads, whose gradients of logits are stored until the gradients of queries and of the bias are made of
// them.
#pragma once

#include "backends/cuda/attention/attention_boxes.h"

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

// Whether the entries of a batch share the bias. Then the gradients of the first entry's logits are stored where those
// of the bias will be, and the other entries have memory of their own until they are added to them.
inline __host__ __device__ bool shares_slopes(const Problem& p) { return p.slopes != p.dbias; }

// The number of a head among those that have memory of their own.
inline __device__ int slope_number(const Problem& p, int batch, int head) {
  return ((batch - shares_slopes(p)) * p.part_groups - p.first_group) * p.per_group() + head;
}

// Where the gradients of a head's logits are stored.
struct SlopeBoxes {
  const CUtensorMap& boxes;
  int number;

  __device__ SlopeBoxes(const Problem& p, const BoxSources& sources, int batch, int head)
      : boxes(shares_slopes(p) && batch == 0 ? sources.bias_slopes : sources.slopes),
        number(shares_slopes(p) && batch == 0 ? head : slope_number(p, batch, head)) {}
};

}  // namespace capibara::cuda::attention
