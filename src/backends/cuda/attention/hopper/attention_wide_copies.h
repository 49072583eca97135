// What the warpgroup that copies does for attention forwards by 128 keys: keys and values in slots of their own.
#pragma once

#include "backends/cuda/attention/hopper/attention_copies.h"

namespace capibara::cuda::attention {

inline constexpr int wide_keys = 128;
template <class T, int D>
using WideTile = TileOf<T, D, wide_keys>;
// Slots hold keys and values in turn.
template <int D>
inline constexpr int wide_slots = D == 64 ? 8 : 5;
template <class T, int D>
inline constexpr int wide_bytes = workers* GroupTile<T, D>::bytes + wide_slots<D>* WideTile<T, D>::bytes + 1024;

using WideBits = TileBits<false>[2];

template <class T, int D, int Count>
__device__ void copy_wide_keys(const Problem& p, const BoxSources& sources, const RowBlock<group_rows>& rows,
                               const Visits& visits, const Stages<Count>& stages, WideBits* bits, int count,
                               uint32_t slots) {
  const int head = rows.batch * p.groups + rows.group;
  const int64_t row = static_cast<int64_t>(head) * p.keys;
  const bool odd = has_odd_rows(p);
  const int query = rows.first + static_cast<int>(threadIdx.x);
  auto mask_of = [&](int visit) {
    return visit < 2 * count ? mask_word(p, rows.batch, rows.head, query, visits.tile(visit) * 64) : 0;
  };
  auto copy = [&](int slot, int item, uint32_t barrier) {
    const bool values = item % 2;
    const uint32_t to = slots + slot * WideTile<T, D>::bytes;
    if (!odd) {
      if (threadIdx.x != 0) return;
      expect_bytes(barrier, WideTile<T, D>::bytes);
      for (int part = 0; part < 2; ++part) {
        const int first = visits.tile(item / 2 * 2 + part) * 64;
        start_boxes<D, wide_keys>(to + part * 64 * 128, values ? sources.value : sources.key, first, head, barrier);
      }
      return;
    }
    const int width = values ? p.value_size : p.size;
    const T* from = static_cast<const T*>(values ? p.value : p.key);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int first = visits.tile(item / 2 * 2 + part) * 64;
      WideTile<T, D>::template copy<group_threads, 64>(to + part * 64 * 128, from + (row + first) * width,
                                                       p.keys - first, width);
    }
  };
  uint64_t next[2] = {mask_of(0), mask_of(1)};  // loaded while the visits before them are copied
  auto make = [&](int, int item) {
    if (item % 2) return;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const uint64_t mask = next[part];
      next[part] = mask_of(item + 2 + part);
      bits[item / 2 % Count][part].write_seen(p, visits.level(item + part, threadIdx.x / 64), rows.batch, rows.head,
                                              query, visits.tile(item + part) * 64, mask);
    }
  };
  stages.copy_all(2 * count, odd, odd, copy, make);
}

}  // namespace capibara::cuda::attention
