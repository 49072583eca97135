// What the warpgroup that copies does for kernels whose rows are queries.
#pragma once

#include "backends/cuda/attention_masks.h"

namespace capibara::cuda::attention {

inline constexpr int forward_stages = 4, backward_stages = 3;

inline __device__ uint32_t aligned_memory(const void* memory) {
  return (static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
}

// The copier's work: keys and values of the visits.
template <class T, int D, int Count>
__device__ void copy_keys(const Problem& p, const RowBlock<group_rows>& rows, const Visits& visits,
                          const Stages<Count>& stages, int count, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int64_t row = (static_cast<int64_t>(rows.batch) * p.groups + rows.group) * p.keys;
  stages.copy_all(count, Visits::odd(p), [&](int stage, int i) {
    const int first = visits.tile(i) * 64, exist = p.keys - first;
    const uint32_t to = tiles + stage * stage_bytes_of<T, D>;
    const T *keys = static_cast<const T*>(p.key) + (row + first) * p.size,
            *values = static_cast<const T*>(p.value) + (row + first) * p.value_size;
    GroupTile<T, D>::copy(to, keys, exist, p.size);
    GroupTile<T, D>::copy(to + bytes, values, exist, p.value_size);
    if (MaskBits<false>::takes(p)) MaskBits<false>::copy(p, to + 2 * bytes, rows.batch, rows.head, rows.first, first);
  });
}

}  // namespace capibara::cuda::attention
