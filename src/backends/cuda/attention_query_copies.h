// What the warpgroup that copies does for the kernel whose rows are keys.
#pragma once

#include "backends/cuda/attention_copies.h"

namespace capibara::cuda::attention {

// The rows of a block of keys, and the tiles of queries: of each head of the group those of its queries.
struct KeyBlock {
  int batch, group, first, query_tiles;
  int64_t begin;  // number of row 0 among [batch, groups, keys]

  __device__ KeyBlock(const Problem& p, int block) {
    const int tiles = (p.keys + group_rows - 1) / group_rows, which = block / tiles;
    batch = which / p.groups;
    group = which % p.groups;
    first = block % tiles * group_rows;
    query_tiles = (p.queries + 63) / 64;
    begin = static_cast<int64_t>(which) * p.keys;
  }
  __device__ int head(const Problem& p, int tile) const { return group * p.per_group() + tile / query_tiles; }
  __device__ int query(int tile) const { return tile % query_tiles * 64; }
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
template <class T, int D, bool biased, int Count>
__device__ void copy_queries(const Problem& p, const KeyBlock& block, const Visits& visits, const Stages<Count>& stages,
                             TileBits<true>* bits, RowNumbers* numbers, int count, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  int dropout_head = -1;
  uint2 dropout{};
  auto row_of = [&](int tile) {
    return (static_cast<int64_t>(block.batch) * p.heads + block.head(p, tile)) * p.queries + block.query(tile);
  };
  auto copy = [&](int stage, int i) {
    const int tile = visits.tile(i), first = block.query(tile), exist = p.queries - first;
    const int64_t row = row_of(tile);
    const uint32_t to = tiles + stage * stage_bytes_of<T, D, biased>;
    GroupTile<T, D>::copy(to, static_cast<const T*>(p.query) + row * p.size, exist, p.size);
    GroupTile<T, D>::copy(to + bytes, static_cast<const T*>(p.cotangent) + row * p.value_size, exist, p.value_size);
    if (biased && has_bias_pieces(p)) {
      for (int w = 0; w < workers; ++w) {
        const uint32_t bias = to + 2 * bytes + w * bias_tile_bytes;
        BiasTile<T>::copy(p, bias, block.batch, block.head(p, tile), first, block.first + 64 * w);
      }
    }
    if (!biased && MaskBits<true>::takes(p))
      MaskBits<true>::copy(p, to + 2 * bytes, block.batch, block.head(p, tile), first, block.first);
    numbers[stage].copy(p, row, exist);
  };
  auto make = [&](int stage, int i) {
    const int tile = visits.tile(i), worker = threadIdx.x / 64, head = block.head(p, tile);
    const int query = block.query(tile);
    bits[stage].write_seen(p, visits.level(i, worker), block.batch, head, query + threadIdx.x % 64,
                           block.first + 64 * worker, has_mask_bits<biased>(p));
    if (p.threshold == 0) return;
    if (dropout_head != head) dropout = dropout_key(p, block.batch, head);
    dropout_head = head;
    bits[stage].write_kept(p, dropout, query, 0, block.first, 64);
  };
  stages.copy_all(count, has_odd_rows(p), copy, make);
}

}  // namespace capibara::cuda::attention
