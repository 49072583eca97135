// What the warpgroup that copies does for the slopes of a broadcast bias: tiles of all iterations, in slots.
#pragma once

#include "backends/cuda/attention/hopper/attention_bias_tiles.h"
#include "backends/cuda/attention/hopper/attention_copies.h"

namespace capibara::cuda::attention {

// Tiles of an iteration, in their order: queries and cotangents of both workers, then keys and values of each half.
inline constexpr int bias_parts = 8, bias_slots = 12, bias_columns = 128;
template <class T, int D>
inline constexpr int group_bias_bytes = bias_slots* GroupTile<T, D>::bytes + bias_bytes + 1024;

// Bits of four halves of keys: when they are written again, all workers are two iterations further.
using BiasTileBits = TileBits<false, true>;
using BiasBits = BiasTileBits[4];

// Iterations of a tile.
inline __device__ int bias_count(const Problem& p, const BiasGrid& grid, int block) {
  const BiasPlace at = grid.place(block, 0);
  const Rectangle tile{at.query, min(at.query + group_rows, p.queries), at.key, min(at.key + bias_columns, p.keys)};
  const bool same = p.bias_step[2] && p.bias_step[3] && p.by_position();
  return same && seen_by_position(p, tile) == none ? 0 : grid.iterations();
}

// Of a tile of which nothing is seen: by the threads that copy.
template <class T>
__device__ void store_bias_zeros(const Problem& p, const BiasPlace& at) {
  const BiasSlopes<T> to(p, at.batch, at.head);
  for (int i = threadIdx.x; i < group_rows * bias_columns / 8; i += group_threads)
    to.store_piece(p, at.query + i / (bias_columns / 8), at.key + i % (bias_columns / 8) * 8, uint4{});
}

// Of the tile with number `block`, after `begin` iterations of others.
template <class T, int D>
__device__ void copy_for_bias(const Problem& p, const BoxSources& sources, const BiasGrid& grid,
                              const Stages<bias_slots>& stages, BiasBits& bits, int block, int begin, int count,
                              uint32_t slots) {
  using Tile = GroupTile<T, D>;
  BiasWalk walk(p, grid, block);
  const BiasPlace& at = walk.at;
  int group = 0;  // of keys
  const bool odd = has_odd_rows(p);
  auto copy = [&](int slot, int i, uint32_t barrier) {
    if (i > begin * bias_parts && i % bias_parts == 0) walk.advance();
    if (i % bias_parts == 0) group = at.head / p.per_group();
    const int part = i % bias_parts, query = at.query + part % 2 * 64, key = at.key + (part - 4) / 2 * 64;
    const int64_t row = (static_cast<int64_t>(at.batch) * p.heads + at.head) * p.queries + query;
    const int64_t key_row = (static_cast<int64_t>(at.batch) * p.groups + group) * p.keys + key;
    const uint32_t to = slots + slot * Tile::bytes;
    const bool of_queries = part < 4, of_values = of_queries ? part >= 2 : part % 2;
    if (!odd) {
      if (threadIdx.x != 0) return;
      const int number = of_queries ? at.batch * p.heads + at.head : at.batch * p.groups + group;
      const CUtensorMap& source =
          of_queries ? (of_values ? sources.cotangent : sources.query) : (of_values ? sources.value : sources.key);
      expect_bytes(barrier, Tile::bytes);
      return start_boxes<D, 64>(to, source, of_queries ? query : key, number, barrier);
    }
    const int width = of_values ? p.value_size : p.size, exist = of_queries ? p.queries - query : p.keys - key;
    const void* from = of_queries ? (of_values ? p.cotangent : p.query) : (of_values ? p.value : p.key);
    Tile::copy(to, static_cast<const T*>(from) + (of_queries ? row : key_row) * width, exist, width);
  };
  auto make = [&](int, int i) {
    const int part = i % bias_parts - 4;
    if (part < 0 || part % 2 != 0) return;
    BiasTileBits& to = bits[(i / bias_parts * 2 + part / 2) % 4];
    const int query = at.query + threadIdx.x / 64 * 64, key = at.key + part / 2 * 64;
    const Level level = seen_in(p, {query, query + 64, key, key + 64}, at.batch, at.head);
    const int own = at.query + static_cast<int>(threadIdx.x);
    to.write_seen(p, level, at.batch, at.head, own, key, mask_word(p, at.batch, at.head, own, key));
    if (p.threshold > 0) to.write_kept(p, dropout_key(p, at.batch, at.head), at.query, key);
  };
  stages.copy_all((begin + count) * bias_parts, odd, odd, copy, make, begin * bias_parts);
}

}  // namespace capibara::cuda::attention
