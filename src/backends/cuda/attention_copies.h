// What the warpgroup that copies does for kernels whose rows are queries.
#pragma once

#include "backends/cuda/attention_extras.h"

namespace capibara::cuda::attention {

template <bool biased>
inline constexpr int forward_stages = biased ? 3 : 4;
inline constexpr int backward_stages = 3;

// Keys and values of the visits, and what the workers read beside them.
template <class T, int D, bool biased, int Count>
__device__ void copy_keys(const Problem& p, const RowBlock<group_rows>& rows, const Visits& visits,
                          const Stages<Count>& stages, TileBits<false>* bits, int count, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int64_t row = (static_cast<int64_t>(rows.batch) * p.groups + rows.group) * p.keys;
  auto copy = [&](int stage, int i) {
    const int first = visits.tile(i) * 64, exist = p.keys - first;
    const uint32_t to = tiles + stage * stage_bytes_of<T, D, biased>;
    const T *keys = static_cast<const T*>(p.key) + (row + first) * p.size,
            *values = static_cast<const T*>(p.value) + (row + first) * p.value_size;
    GroupTile<T, D>::copy(to, keys, exist, p.size);
    GroupTile<T, D>::copy(to + bytes, values, exist, p.value_size);
    if (biased && has_bias_pieces(p)) {
      for (int w = 0; w < workers; ++w)
        BiasTile<T>::copy(p, to + 2 * bytes + w * bias_tile_bytes, rows.batch, rows.head, rows.first + 64 * w, first);
    }
    if (!biased && MaskBits<false>::takes(p))
      MaskBits<false>::copy(p, to + 2 * bytes, rows.batch, rows.head, rows.first, first);
  };
  auto make = [&](int stage, int i) {
    const Level level = visits.level(i, threadIdx.x / 64);
    bits[stage].write_seen(p, level, rows.batch, rows.head, rows.first + threadIdx.x, visits.tile(i) * 64,
                           has_mask_bits<biased>(p));
  };
  stages.copy_all(count, has_odd_rows(p), copy, make);
}

}  // namespace capibara::cuda::attention
