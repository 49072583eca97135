// What the warpgroup that copies does for kernels whose rows are queries.
#pragma once

#include "backends/cuda/attention/hopper/attention_extras.h"
#include "backends/cuda/attention/hopper/attention_mask_bits.h"

namespace capibara::cuda::attention {

inline constexpr int copier_registers = 40, key_copier_registers = 24;
template <bool biased>
inline constexpr int forward_stages = biased ? 3 : 5;
template <bool biased, bool split>
inline constexpr int backward_stages = biased  ? 3
                                       : split ? 5
                                               : 4;
// Bytes of shared memory: the tiles of two operands of all own rows, and stages.
template <class T, int D, bool biased, bool split>
inline constexpr int backward_group_bytes = group_bytes<T, D, biased, split ? 1 : 2, backward_stages<biased, split>>;

// Whether all threads of the copier copy something of a stage.
template <bool biased>
__device__ bool copied_by_threads(const Problem& p) {
  return has_odd_rows(p) || (biased && has_bias_pieces(p) && !has_bias_boxes(p));
}

// Starts to copy `tiles` of 64 rows of two operands in turn, by all threads: from row number `row` on, of which
// `exist`.
template <class T, int D>
__device__ void copy_own_pairs(const Problem& p, const void* first, const void* second, int64_t row, int exist,
                               int tiles, uint32_t to) {
  using Tile = GroupTile<T, D>;
  for (int i = 0; i < 64 * tiles; i += 64, to += 2 * Tile::bytes) {
    Tile::template copy<all_threads>(to, static_cast<const T*>(first) + (row + i) * p.size, exist - i, p.size);
    Tile::template copy<all_threads>(to + Tile::bytes, static_cast<const T*>(second) + (row + i) * p.value_size,
                                     exist - i, p.value_size);
  }
  end_copies();
}

// Keys and values of the visits, and what the workers read beside them.
template <class T, int D, bool biased, int Rows, int Count>
__device__ void copy_keys(const Problem& p, const BoxSources& sources, const RowBlock<Rows>& rows, const Visits& visits,
                          const Stages<Count>& stages, TileBits<false>* bits, int count, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int head = rows.batch * p.groups + rows.group;
  const int64_t row = static_cast<int64_t>(head) * p.keys;
  const bool odd = has_odd_rows(p);
  const int own = static_cast<int>(threadIdx.x) % Rows, query = rows.first + own;
  auto mask_of = [&](int i) { return i < count ? mask_word(p, rows.batch, rows.head, query, visits.tile(i) * 64) : 0; };
  auto copy_odd = [&](uint32_t to, int first) {
    const T *keys = static_cast<const T*>(p.key) + (row + first) * p.size,
            *values = static_cast<const T*>(p.value) + (row + first) * p.value_size;
    GroupTile<T, D>::copy(to, keys, p.keys - first, p.size);
    GroupTile<T, D>::copy(to + bytes, values, p.keys - first, p.value_size);
  };
  auto copy = [&](int stage, int i, uint32_t barrier) {
    const int first = visits.tile(i) * 64;
    const uint32_t to = tiles + stage * stage_bytes_of<T, D, biased>;
    if (odd) {
      copy_odd(to, first);
    } else if (threadIdx.x == 0) {
      expect_bytes(barrier, 2 * bytes);
      start_boxes<D, 64>(to, sources.key, first, head, barrier);
      start_boxes<D, 64>(to + bytes, sources.value, first, head, barrier);
    }
    if (biased) copy_bias<T, false>(p, sources, to + 2 * bytes, rows.batch, rows.head, rows.first, first, barrier);
  };
  uint64_t next_mask = mask_of(0);  // loaded while the visit before it is copied
  auto make = [&](int stage, int i) {
    const uint64_t mask = next_mask;
    next_mask = mask_of(i + 1);
    bits[stage].write_seen(p, visits.level(i, own / 64), rows.batch, rows.head, query, visits.tile(i) * 64, mask);
  };
  stages.copy_all(count, copied_by_threads<biased>(p), odd, copy, make);
}

}  // namespace capibara::cuda::attention
