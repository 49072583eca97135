// Forward attention: 64 query rows by tiles of keys, with running maxima and sums of the softmax.
#pragma once

#include "backends/cuda/attention/attention_drop.h"
#include "backends/cuda/attention/attention_products.h"
#include "backends/cuda/attention/attention_rows.h"

namespace capibara::cuda::attention {

// Keys per tile: two stages of keys and values fit alongside the queries.
template <class T, int D>
inline constexpr int forward_keys = sizeof(T) * D == 1024 ? 32 : 64;
template <class T, int D>
inline constexpr int forward_bytes = (block_rows + 4 * forward_keys<T, D>)*D* static_cast<int>(sizeof(T));

template <class T, int D>
__global__ void __launch_bounds__(block_threads) forward_kernel(const __grid_constant__ Problem p) {
  constexpr int N = forward_keys<T, D>, bytes = TileOf<T, D, N>::bytes;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int list[block_threads];
  const auto queries = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const uint32_t stages = queries + TileOf<T, D, block_rows>::bytes;
  const RowBlock<> rows(p, blockIdx.x);
  const int64_t key_row = (static_cast<int64_t>(rows.batch) * p.groups + rows.group) * p.keys;
  const T *keys = static_cast<const T*>(p.key) + key_row * p.size,
          *values = static_cast<const T*>(p.value) + key_row * p.value_size;
  TileOf<T, D, block_rows>::copy(queries, static_cast<const T*>(p.query) + (rows.begin + rows.first) * p.size,
                                 rows.rows - rows.first, p.size);
  Place at = rows.place(p);
  const int thread_column = at.column, warp_row = threadIdx.x / 32 * 16;
  Softmax softmax;
  float sums[D / 8][4] = {};
  auto copy = [&](int stage, int tile) {
    const int64_t first = static_cast<int64_t>(tile) * N;
    const int exist = p.keys - tile * N;
    const uint32_t to = stages + stage * 2 * bytes;
    TileOf<T, D, N>::copy(to, keys + first * p.size, exist, p.size);
    TileOf<T, D, N>::copy(to + bytes, values + first * p.value_size, exist, p.value_size);
  };
  auto use = [&](int stage, int tile, bool whole) {
    if (warp_row >= rows.rows - rows.first) return;  // few rows: the others' reads of shared memory would slow these
    const uint32_t from = stages + stage * 2 * bytes;
    float logits[N / 8][4] = {}, decay[2];
    multiply_rows<T, D, N>(logits, queries, warp_row, from);
    at.column = thread_column + tile * N;
    make_logits<T, false, N>(p, logits, at, whole);
    softmax.take<N>(logits, decay);
#pragma unroll
    for (int j = 0; j < D / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[j][e] *= decay[e / 2];
    }
    if (p.threshold > 0) {
      drop<false, N>(p, at, [&](int j, int e, bool kept) { logits[j][e] = kept ? logits[j][e] : 0.0f; });
    }
    multiply_across<T, D, N>(sums, logits, from + bytes);
  };
  const int tiles = (p.keys + N - 1) / N, share = (tiles + p.splits - 1) / p.splits;
  const int begin = blockIdx.y * share, end = min(begin + share, tiles);
  for (int first = begin; first < end; first += block_threads) {
    const int count = list_tiles(list, first, end, [&](int tile) {
      return seen_in(p, rows.with_keys(p, tile * N, tile * N + N), rows.batch, rows.head);
    });
    visit(list, count, copy, use);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = rows.first + warp_row + threadIdx.x % 32 / 4 + 8 * half;
    const float total = row_sum(softmax.sum[half]);
    if (row >= rows.rows) continue;
    const float factor = total == 0 ? 0.0f : (p.threshold > 0 ? p.keep_scale : 1.0f) / total;
    const float lse = total == 0 ? -infinity : softmax.maximum[half] * ln2 + logf(total);
    const int64_t to = rows.begin + row;
    const int64_t part = blockIdx.y * (static_cast<int64_t>(p.batch) * p.heads * p.queries) + to;
    if (threadIdx.x % 4 == 0) (p.splits > 1 ? p.part_lse[part] : p.out_lse[to]) = lse;
    if (p.splits > 1)
      store_row<float, D>(p.part_out + part * p.value_size, sums, half, p.value_size, factor);
    else
      store_row<T, D>(static_cast<T*>(p.out) + to * p.value_size, sums, half, p.value_size, factor);
  }
}

// Combines the results for parts of the keys: one block per row.
template <class T>
__global__ void combine_kernel(const __grid_constant__ Problem p) {
  const int64_t rows = static_cast<int64_t>(p.batch) * p.heads * p.queries, row = blockIdx.x;
  float greatest = -infinity, total = 0;
  for (int part = 0; part < p.splits; ++part) greatest = fmaxf(greatest, p.part_lse[part * rows + row]);
  const float base = greatest == -infinity ? 0.0f : greatest;
  for (int part = 0; part < p.splits; ++part) total += expf(p.part_lse[part * rows + row] - base);
  if (threadIdx.x == 0) p.out_lse[row] = total == 0 ? -infinity : base + logf(total);
  for (int column = threadIdx.x; column < p.value_size; column += blockDim.x) {
    float sum = 0;
    for (int part = 0; part < p.splits; ++part) {
      sum += expf(p.part_lse[part * rows + row] - base) * p.part_out[(part * rows + row) * p.value_size + column];
    }
    static_cast<T*>(p.out)[row * p.value_size + column] = static_cast<T>(total == 0 ? 0.0f : sum / total);
  }
}

}  // namespace capibara::cuda::attention
