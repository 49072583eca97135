// The slopes of keys and values by warpgroups: rows are keys, sums go over the queries of all heads of a group in a
// fixed order.
#pragma once

#include "backends/cuda/attention_group_queries.h"

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

// Of the queries of each stage.
struct RowNumbers {
  float lse[backward_stages][64], delta[backward_stages][64];
};

template <class T, int D, bool rich, int Count>
__device__ void work_on_keys(const Problem& p, const KeyBlock& keys, const Visits& visits, const Stages<Count>& stages,
                             const RowNumbers& numbers, int count, int worker, uint32_t own, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int lane = threadIdx.x % 32, first_row = keys.first + 64 * worker + threadIdx.x / 32 % 4 * 16;
  Place at{keys.batch, {-1, -1}, {first_row + lane / 4, first_row + lane / 4 + 8}, 0, {}};
  float key_sums[D / 8][4] = {}, value_sums[D / 8][4] = {};
  Extras<T, true, rich> extras;
  for (int i = next_visit(visits, stages, 0, count, worker); i < count;
       i = next_visit(visits, stages, i + 1, count, worker)) {
    const int tile = visits.tile(i), stage = i % Count;
    const uint32_t from = tiles + stage * stage_bytes_of<T, D>;
    float shares[8][4], slopes[8][4];
    uint32_t narrow_shares[4][4], narrow_slopes[4][4];
    stages.await_full(i);
    begin_products();
    start_rows<T, D>(shares, own, from);
    end_products();
    start_rows<T, D>(slopes, own + bytes, from + bytes);
    end_products();
    const int head = keys.head(p, tile);
    if (rich && at.head[0] != head) at.dropout[0] = dropout_key(p, keys.batch, head);
    at.head[0] = at.head[1] = head;
    at.column = keys.query(tile) + 2 * (lane % 4);
    extras.load(p, at);
    await_products<1>();
    extras.apply(p, shares, at, visits.level(i, worker) == all, from + 2 * bytes, worker);
    await_products<0>();
    auto column = [&](int j, int e) { return 8 * j + 2 * (lane % 4) + e % 2; };
    make_slopes<true, 64, rich>(
        p, shares, slopes, at, [&](int j, int e) { return base_of(numbers.lse[stage][column(j, e)]); },
        [&](int j, int e) { return numbers.delta[stage][column(j, e)]; }, factor_of(p));
    narrow<T>(narrow_shares, shares);
    narrow<T>(narrow_slopes, slopes);
    begin_products();
    start_across<T, D>(value_sums, narrow_shares, from + bytes);
    start_across<T, D>(key_sums, narrow_slopes, from);
    end_products();
    await_products<0>();
    stages.release(i);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t to = keys.begin + at.row[half];
    if (at.row[half] >= p.keys) continue;
    store_row<T, D>(static_cast<T*>(p.dkey) + to * p.size, key_sums, half, p.size, p.scale);
    const float factor = p.threshold > 0 ? p.keep_scale : 1.0f;
    store_row<T, D>(static_cast<T*>(p.dvalue) + to * p.value_size, value_sums, half, p.value_size, factor);
  }
}

template <class T, int D, bool rich>
__global__ void __launch_bounds__(all_threads, 1) group_keys_kernel(const __grid_constant__ Problem p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ Stages<backward_stages> stages;
  __shared__ RowNumbers numbers;
  const uint32_t own = aligned_memory(memory), tiles = own + 2 * workers * bytes;
  const KeyBlock block(p, blockIdx.x);
  for (int w = 0; w < workers; ++w) {
    const int first = block.first + 64 * w, exist = p.keys - first;
    const T *keys = static_cast<const T*>(p.key) + (block.begin + first) * p.size,
            *values = static_cast<const T*>(p.value) + (block.begin + first) * p.value_size;
    GroupTile<T, D>::template copy<all_threads>(own + 2 * w * bytes, keys, exist, p.size);
    GroupTile<T, D>::template copy<all_threads>(own + (2 * w + 1) * bytes, values, exist, p.value_size);
  }
  end_copies();
  stages.set_up();
  const int count = visits.fill(p.per_group() * block.query_tiles, [&](int tile, int worker) {
    const int key = block.first + 64 * worker, query = block.query(tile);
    return seen_in(p, {query, query + 64, key, key + 64}, block.batch, block.head(p, tile));
  });
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    give_registers<copier_registers>();
    stages.copy_all(count, Visits::odd(p), [&](int stage, int i) {
      const int tile = visits.tile(i), first = block.query(tile), exist = p.queries - first;
      const int64_t row = (static_cast<int64_t>(block.batch) * p.heads + block.head(p, tile)) * p.queries + first;
      const uint32_t to = tiles + stage * stage_bytes_of<T, D>;
      GroupTile<T, D>::copy(to, static_cast<const T*>(p.query) + row * p.size, exist, p.size);
      GroupTile<T, D>::copy(to + bytes, static_cast<const T*>(p.cotangent) + row * p.value_size, exist, p.value_size);
      if (MaskBits<true>::takes(p)) {
        MaskBits<true>::copy(p, to + 2 * bytes, block.batch, block.head(p, tile), first, block.first);
      }
      // Rows that do not exist have zeros: their cotangents are zeros too.
      const int number = threadIdx.x % 64;
      const float* from = (threadIdx.x < 64 ? p.lse : p.delta) + row + number;
      const float* shared = (threadIdx.x < 64 ? numbers.lse : numbers.delta)[stage] + number;
      copy_number(static_cast<uint32_t>(__cvta_generic_to_shared(shared)), number < exist ? from : p.lse,
                  number < exist);
    });
  } else {
    take_registers<worker_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    work_on_keys<T, D, rich>(p, block, visits, stages, numbers, count, worker, own + 2 * worker * bytes, tiles);
  }
#endif
}

}  // namespace capibara::cuda::attention
