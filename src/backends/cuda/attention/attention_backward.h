// Backward attention in two passes, each summing in a fixed order: over keys for dQ, over
// queries for dK and dV. Probabilities are recomputed from the log-sum-exp of each row.
#pragma once

#include "backends/cuda/attention/attention_gradients.h"
#include "backends/cuda/attention/attention_products.h"
#include "backends/cuda/attention/attention_rows.h"

namespace capibara::cuda::attention {

// Rows per tile of the double-buffered operands.
template <class T, int D>
inline constexpr int backward_rows = sizeof(T) * D == 1024 ? 16 : 64;
template <class T, int D>
inline constexpr int backward_bytes = (2 * block_rows + 4 * backward_rows<T, D>)*D* static_cast<int>(sizeof(T));

template <class T, int D>
__global__ void __launch_bounds__(block_threads) query_gradients_kernel(const __grid_constant__ Problem p) {
  constexpr int N = backward_rows<T, D>, bytes = TileOf<T, D, N>::bytes, own_bytes = TileOf<T, D, block_rows>::bytes;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int list[block_threads];
  const auto queries = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const uint32_t cotangents = queries + own_bytes, stages = cotangents + own_bytes;
  const RowBlock<> rows(p, blockIdx.x);
  const int64_t key_row = (static_cast<int64_t>(rows.batch) * p.groups + rows.group) * p.keys;
  const T *keys = static_cast<const T*>(p.key) + key_row * p.size,
          *values = static_cast<const T*>(p.value) + key_row * p.value_size;
  const int64_t row = rows.begin + rows.first;
  const int exist = rows.rows - rows.first;
  TileOf<T, D, block_rows>::copy(queries, static_cast<const T*>(p.query) + row * p.size, exist, p.size);
  TileOf<T, D, block_rows>::copy(cotangents, static_cast<const T*>(p.cotangent) + row * p.value_size, exist,
                                 p.value_size);
  Place at = rows.place(p);
  const int thread_column = at.column, warp_row = threadIdx.x / 32 * 16, own = warp_row + threadIdx.x % 32 / 4;
  float base[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool exists = own + 8 * half < exist;
    base[half] = exists ? base_of(p.lse[row + own + 8 * half]) : infinity;
    delta[half] = exists ? p.delta[row + own + 8 * half] : 0.0f;
  }
  float sums[D / 8][4] = {};
  auto copy = [&](int stage, int tile) {
    const int64_t first = static_cast<int64_t>(tile) * N;
    const uint32_t to = stages + stage * 2 * bytes;
    TileOf<T, D, N>::copy(to, keys + first * p.size, p.keys - tile * N, p.size);
    TileOf<T, D, N>::copy(to + bytes, values + first * p.value_size, p.keys - tile * N, p.value_size);
  };
  auto use = [&](int stage, int tile, bool whole) {
    const uint32_t from = stages + stage * 2 * bytes;
    float shares[N / 8][4] = {}, gradients[N / 8][4] = {};
    multiply_rows<T, D, N>(shares, queries, warp_row, from);
    at.column = thread_column + tile * N;
    make_logits<T, false, N>(p, shares, at, whole);
    multiply_rows<T, D, N>(gradients, cotangents, warp_row, from + bytes);
    make_gradients<false, N>(
        p, shares, gradients, at, [&](int, int e) { return base[e / 2]; }, [&](int, int e) { return delta[e / 2]; });
    multiply_across<T, D, N>(sums, gradients, from);
  };
  const int tiles = (p.keys + N - 1) / N;
  for (int first = 0; first < tiles; first += block_threads) {
    const int count = list_tiles(list, first, tiles, [&](int tile) {
      return seen_in(p, rows.with_keys(p, tile * N, tile * N + N), rows.batch, rows.head);
    });
    visit(list, count, copy, use);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (own + 8 * half >= exist) continue;
    store_row<T, D>(static_cast<T*>(p.dquery) + (row + own + 8 * half) * p.size, sums, half, p.size, p.scale);
  }
}

// Rows are keys. For large heads both results do not fit in registers: they are computed one after the other.
template <class T, int D, bool of_keys, bool of_values>
__global__ void __launch_bounds__(block_threads) key_gradients_kernel(const __grid_constant__ Problem p) {
  constexpr int N = backward_rows<T, D>, bytes = TileOf<T, D, N>::bytes, own_bytes = TileOf<T, D, block_rows>::bytes;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int list[block_threads];
  __shared__ float bases[2][N], deltas[2][N];
  const auto keys = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const uint32_t values = keys + own_bytes, stages = values + own_bytes;
  const int key_tiles = (p.keys + block_rows - 1) / block_rows, which = blockIdx.x / key_tiles;
  const int first_key = blockIdx.x % key_tiles * block_rows, batch = which / p.groups, group = which % p.groups;
  const int64_t key_row = static_cast<int64_t>(which) * p.keys + first_key;
  const int exist = p.keys - first_key, query_tiles = (p.queries + N - 1) / N;
  TileOf<T, D, block_rows>::copy(keys, static_cast<const T*>(p.key) + key_row * p.size, exist, p.size);
  TileOf<T, D, block_rows>::copy(values, static_cast<const T*>(p.value) + key_row * p.value_size, exist, p.value_size);
  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16, own = warp_row + lane / 4;
  Place at{batch, {-1, -1}, {first_key + own, first_key + own + 8}, 0, {}};
  float key_sums[of_keys ? D / 8 : 1][4] = {}, value_sums[of_values ? D / 8 : 1][4] = {};
  // The tile index combines a head of the group and a tile of its queries.
  auto head_of = [&](int tile) { return group * p.per_group() + tile / query_tiles; };
  auto copy = [&](int stage, int tile) {
    const int first = tile % query_tiles * N, left = p.queries - first;
    const int64_t row = (static_cast<int64_t>(batch) * p.heads + head_of(tile)) * p.queries + first;
    const uint32_t to = stages + stage * 2 * bytes;
    TileOf<T, D, N>::copy(to, static_cast<const T*>(p.query) + row * p.size, left, p.size);
    TileOf<T, D, N>::copy(to + bytes, static_cast<const T*>(p.cotangent) + row * p.value_size, left, p.value_size);
    if (threadIdx.x < N) {
      const bool exists = static_cast<int>(threadIdx.x) < left;
      bases[stage][threadIdx.x] = exists ? base_of(p.lse[row + threadIdx.x]) : infinity;
      deltas[stage][threadIdx.x] = exists ? p.delta[row + threadIdx.x] : 0.0f;
    }
  };
  auto use = [&](int stage, int tile, bool whole) {
    const uint32_t from = stages + stage * 2 * bytes;
    float shares[N / 8][4] = {}, gradients[N / 8][4] = {};
    multiply_rows<T, D, N>(shares, keys, warp_row, from);
    if (at.head[0] != head_of(tile)) at.dropout[0] = dropout_key(p, batch, head_of(tile));
    at.head[0] = at.head[1] = head_of(tile);
    at.column = tile % query_tiles * N + 2 * (lane % 4);
    make_logits<T, true, N>(p, shares, at, whole);
    if constexpr (of_keys) multiply_rows<T, D, N>(gradients, values, warp_row, from + bytes);
    auto column = [&](int j, int e) { return 8 * j + 2 * (lane % 4) + e % 2; };
    make_gradients<true, N>(
        p, shares, gradients, at, [&](int j, int e) { return bases[stage][column(j, e)]; },
        [&](int j, int e) { return deltas[stage][column(j, e)]; });
    if constexpr (of_values) multiply_across<T, D, N>(value_sums, shares, from + bytes);
    if constexpr (of_keys) multiply_across<T, D, N>(key_sums, gradients, from);
  };
  const int tiles = p.per_group() * query_tiles;
  for (int first = 0; first < tiles; first += block_threads) {
    const int count = list_tiles(list, first, tiles, [&](int tile) {
      const int query = tile % query_tiles * N;
      return seen_in(p, {query, query + N, first_key, first_key + block_rows}, batch, head_of(tile));
    });
    visit(list, count, copy, use);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t to = key_row + own + 8 * half;
    if (own + 8 * half >= exist) continue;
    if constexpr (of_keys) {
      store_row<T, D>(static_cast<T*>(p.dkey) + to * p.size, key_sums, half, p.size, p.scale);
    }
    if constexpr (of_values) {
      const float factor = p.threshold > 0 ? p.keep_scale : 1.0f;
      store_row<T, D>(static_cast<T*>(p.dvalue) + to * p.value_size, value_sums, half, p.value_size, factor);
    }
  }
}

}  // namespace capibara::cuda::attention
