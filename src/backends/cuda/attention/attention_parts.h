// Parts of the heads: the gradients of the logits are materialised for one part at a time; dQ and dBias are computed
// from them.
#pragma once

#include "backends/cuda/attention/attention_boxes.h"

namespace capibara::cuda::attention {

// The tile of a thread block: with several parts, the longest tiles of all heads or groups of a part start first; with
// a single part, tiles of a head are consecutive, so that its rows stay in the cache.
struct TileOfPart {
  int tile, batch, head;  // the head index is relative to the part
};
inline __device__ TileOfPart tile_of_part(int block, int tiles, int batch, int heads, int part) {
  const int rest = block / batch;
  if (part < heads) return {rest / part, block % batch, rest % part};
  return {rest % tiles, block % batch, rest / tiles};
}

// True if the entries of a batch share the bias. The gradients of the first entry's logits are then stored in place of
// the bias's, and those of the other entries in separate memory until they are added.
inline __host__ __device__ bool shares_gradients(const Problem& p) { return p.gradients != p.dbias; }

// The index of a head among those with separate memory.
inline __device__ int gradient_number(const Problem& p, int batch, int head) {
  return ((batch - shares_gradients(p)) * p.part_groups - p.first_group) * p.per_group() + head;
}

// The storage of the gradients of a head's logits.
struct GradientBoxes {
  const CUtensorMap& boxes;
  int number;

  __device__ GradientBoxes(const Problem& p, const BoxSources& sources, int batch, int head)
      : boxes(shares_gradients(p) && batch == 0 ? sources.bias_gradients : sources.gradients),
        number(shares_gradients(p) && batch == 0 ? head : gradient_number(p, batch, head)) {}
};

}  // namespace capibara::cuda::attention
