// What the warpgroup that copies does for the kernel whose rows are keys.
#pragma once

#include "backends/cuda/attention_copies.h"

namespace capibara::cuda::attention {

// The rows of a block of keys, and the tiles of queries: of each head of the group those of its queries.
template <int Rows>
struct KeyBlock {
  int batch, group, first, query_tiles, per_group;
  int64_t begin;  // number of row 0 among [batch, groups, keys]

  __device__ KeyBlock(const Problem& p, int block) {
    const auto [tile, which] = tile_of(p, block, (p.keys + Rows - 1) / Rows, p.groups);
    batch = which / p.groups;
    group = which % p.groups;
    first = tile * Rows;
    query_tiles = (p.queries + 63) / 64;
    per_group = p.per_group();
    begin = static_cast<int64_t>(which) * p.keys;
  }
  // A tile of queries: its head and its first query.
  struct At {
    int head, query;
  };
  __device__ At at(int tile) const {
    if (per_group == 1) return {group, tile * 64};
    const int number = tile / query_tiles;
    return {group * per_group + number, (tile - number * query_tiles) * 64};
  }
};

// Of the queries of a stage: log-sum-exp and delta. Rows that do not exist have zeros: their cotangents are zeros too.
struct RowNumbers {
  float2 lse[32], delta[32];

  // A thread of the copier copies one.
  __device__ void copy(const Problem& p, int64_t first, int exist) {
    const int number = threadIdx.x % 64;
    const float* from = (threadIdx.x < 64 ? p.lse : p.delta) + first + number;
    const float* to = reinterpret_cast<const float*>(threadIdx.x < 64 ? lse : delta) + number;
    copy_number(static_cast<uint32_t>(__cvta_generic_to_shared(to)), number < exist ? from : p.lse, number < exist);
  }
};

// The copier's work: queries and cotangents of the visits, and what the workers read beside them.
template <class T, int D, bool biased, int Rows, int Count>
__device__ void copy_queries(const Problem& p, const KeyBlock<Rows>& block, const Visits& visits,
                             const Stages<Count>& stages, TileBits<true>* bits, RowNumbers* numbers, int count,
                             uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int worker = Rows == 64 ? 0 : static_cast<int>(threadIdx.x / 64), above = 64 * worker;  // of the thread
  using At = typename KeyBlock<Rows>::At;
  At next = count > 0 ? block.at(visits.tile(0)) : At{}, now{};
  auto copy = [&](int stage, int i) {
    now = next;
    if (i + 1 < count) next = block.at(visits.tile(i + 1));
    const int exist = p.queries - now.query;
    const int64_t row = (static_cast<int64_t>(block.batch) * p.heads + now.head) * p.queries + now.query;
    const uint32_t to = tiles + stage * stage_bytes_of<T, D, biased>;
    GroupTile<T, D>::copy(to, static_cast<const T*>(p.query) + row * p.size, exist, p.size);
    GroupTile<T, D>::copy(to + bytes, static_cast<const T*>(p.cotangent) + row * p.value_size, exist, p.value_size);
    if (biased && has_bias_pieces(p)) {
      for (int w = 0; w < workers; ++w) {
        const uint32_t bias = to + 2 * bytes + w * bias_tile_bytes;
        BiasTile<T>::copy(p, bias, block.batch, now.head, now.query, block.first + 64 * w);
      }
    }
    numbers[stage].copy(p, row, exist);
  };
  auto mask_of = [&](const At& at) {
    return mask_word(p, block.batch, at.head, at.query + static_cast<int>(threadIdx.x % 64), block.first + above);
  };
  uint64_t next_mask = mask_of(next);  // loaded while the visit before it is copied
  auto make = [&](int stage, int i) {
    const uint64_t mask = next_mask;
    next_mask = mask_of(next);
    bits[stage].write_seen(p, visits.level(i, worker), block.batch, now.head, now.query + threadIdx.x % 64,
                           block.first + above, mask);
  };
  stages.copy_all(count, has_odd_rows(p), copy, make);
}

}  // namespace capibara::cuda::attention
