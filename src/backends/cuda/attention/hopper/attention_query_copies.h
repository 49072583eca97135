// What the warpgroup that copies does for the kernel whose rows are keys.
#pragma once

#include "backends/cuda/attention/hopper/attention_copies.h"
#include "backends/cuda/attention/attention_parts.h"
#include "backends/cuda/attention/hopper/attention_row_numbers.h"

namespace capibara::cuda::attention {

// The rows of a block of keys, and the tiles of queries: of each head of the group those of its queries.
template <int Rows>
struct KeyBlock {
  int batch, group, first, query_tiles, per_group;
  int64_t begin;  // number of row 0 among [batch, groups, keys]

  __device__ KeyBlock(const Problem& p, int block) {
    const int tiles = (p.keys + Rows - 1) / Rows;
    if (p.slopes) {
      const TileOfPart at = tile_of_part(block, tiles, p.batch, p.groups, p.part_groups);
      batch = at.batch, group = p.first_group + at.head, first = at.tile * Rows;
    } else {
      const auto [tile, which] = tile_of(p, block, tiles, p.groups);
      batch = which / p.groups, group = which % p.groups, first = tile * Rows;
    }
    query_tiles = (p.queries + 63) / 64;
    per_group = p.per_group();
    begin = (static_cast<int64_t>(batch) * p.groups + group) * p.keys;
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

// What a thread of the copier needs of the next visit, copied while it waits for this one: a row's number, which
// RowNumbers has, and a word of the mask.
struct NextVisits {
  float numbers[2][group_threads];
  uint64_t masks[2][group_threads];

  // Of the queries from row number `row` on, of which `exist`, and the keys from `key` on.
  __device__ void copy(const Problem& p, int visit, int batch, int head, int query, int key, int64_t row) {
    const int own = static_cast<int>(threadIdx.x % 64);
    const bool exists = query + own < p.queries;
    const float* number = (threadIdx.x < 64 ? p.lse : p.delta) + row + own;
    copy_small<4>(&numbers[visit % 2][threadIdx.x], exists ? number : p.lse, exists);
    if (p.mask) {
      const uint64_t* word = mask_bits_at(p, batch, head, query + own, key);
      copy_small<8>(&masks[visit % 2][threadIdx.x], exists && key < p.keys ? word : p.mask_bits,
                    exists && key < p.keys);
    }
    end_copies();
  }
  __device__ float number(int visit) const { return numbers[visit % 2][threadIdx.x]; }
  __device__ uint64_t mask(const Problem& p, int visit) const {
    return p.mask ? masks[visit % 2][threadIdx.x] : ~uint64_t{0};
  }

 private:
  template <int Bytes>
  static __device__ void copy_small(const void* to, const void* from, bool exists) {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
        "l"(from), "n"(Bytes), "r"(exists ? Bytes : 0)
        : "memory");
  }
};

// The copier's work: queries and cotangents of the visits, and what the workers read beside them.
template <class T, int D, Bias kind, int Rows, int Count>
__device__ void copy_queries(const Problem& p, const BoxSources& sources, const KeyBlock<Rows>& block,
                             const Visits& visits, const Stages<Count>& stages, TileBits<true>* bits,
                             RowNumbers* numbers, NextVisits& ahead, int count, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  constexpr bool biased = kind != Bias::none;
  const int worker = Rows == 64 ? 0 : static_cast<int>(threadIdx.x / 64), above = 64 * worker;  // of the thread
  using At = typename KeyBlock<Rows>::At;
  const bool odd = has_odd_rows(p);
  At next = count > 0 ? block.at(visits.tile(0)) : At{}, now{};
  auto row_of = [&](const At& at) {
    return (static_cast<int64_t>(block.batch) * p.heads + at.head) * p.queries + at.query;
  };
  auto copy_odd = [&](uint32_t to) {
    const int64_t row = row_of(now);
    const int exist = p.queries - now.query;
    GroupTile<T, D>::copy(to, static_cast<const T*>(p.query) + row * p.size, exist, p.size);
    GroupTile<T, D>::copy(to + bytes, static_cast<const T*>(p.cotangent) + row * p.value_size, exist, p.value_size);
  };
  auto copy = [&](int stage, int i, uint32_t barrier) {
    now = next;
    if (i + 1 < count) next = block.at(visits.tile(i + 1));
    const uint32_t to = tiles + stage * stage_bytes_of<T, D, biased>;
    if (odd) {
      copy_odd(to);
    } else if (threadIdx.x == 0) {
      const int head = block.batch * p.heads + now.head;
      expect_bytes(barrier, 2 * bytes);
      start_boxes<D, 64>(to, sources.query, now.query, head, barrier);
      start_boxes<D, 64>(to + bytes, sources.cotangent, now.query, head, barrier);
    }
    if (biased) copy_bias<T, true>(p, sources, to + 2 * bytes, block.batch, now.head, now.query, block.first, barrier);
  };
  auto look_ahead = [&](int i) {
    ahead.copy(p, i, block.batch, next.head, next.query, block.first + above, row_of(next));
  };
  if (count > 0) look_ahead(0);
  auto make = [&](int stage, int i) {
    await_copies<0>();
    const uint64_t mask = ahead.mask(p, i);
    constexpr bool bare = kind == Bias::bare;  // products are added to both
    numbers[stage].write(ahead.number(i), bare ? p.bias_factor : log2e, bare ? -1.0f : 1.0f);
    if (i + 1 < count) look_ahead(i + 1);
    bits[stage].write_seen(p, visits.level(i, worker), block.batch, now.head, now.query + threadIdx.x % 64,
                           block.first + above, mask);
  };
  stages.copy_all(count, copied_by_threads<biased>(p), odd, copy, make);
}

}  // namespace capibara::cuda::attention
