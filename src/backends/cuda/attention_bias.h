// The slopes of attention's bias: those of the logits, summed over what the bias is broadcast along, in a fixed order.
#pragma once

#include "backends/cuda/attention_backward.h"

namespace capibara::cuda::attention {

// A dimension of the bias: the blocks that share it out, and the iterations in which a block sums over it.
struct BiasAxis {
  int blocks, iterations;
  __host__ __device__ BiasAxis(int64_t step, int count) : blocks(step ? count : 1), iterations(step ? 1 : count) {}
  // The number of the part among `count`, from those of block and iteration, which lose this axis.
  __host__ __device__ int take(int& block, int& iteration) const {
    const int number = blocks > 1 ? block % blocks : iteration % iterations;
    block /= blocks;
    iteration /= iterations;
    return number;
  }
};

template <class T, int D>
struct BiasGrid {
  static constexpr int keys = backward_rows<T, D>;
  static constexpr int bytes = 2 * (block_rows + keys) * D * static_cast<int>(sizeof(T)) + block_rows * (keys + 1) * 4;
  BiasAxis batch, head, query, key;

  __host__ __device__ explicit BiasGrid(const Problem& p)
      : batch(p.bias_step[0], p.batch),
        head(p.bias_step[1], p.heads),
        query(p.bias_step[2], (p.queries + block_rows - 1) / block_rows),
        key(p.bias_step[3], (p.keys + keys - 1) / keys) {}
  __host__ __device__ int blocks() const { return batch.blocks * head.blocks * query.blocks * key.blocks; }
  __device__ int iterations() const { return batch.iterations * head.iterations * query.iterations * key.iterations; }
};

template <class B>
__device__ void store_bias(const Problem& p, const float* sums, int pitch, int columns, int64_t first, int query,
                           int key) {
  const int rows = p.bias_step[2] ? block_rows : 1, width = p.bias_step[3] ? columns : 1;
  for (int i = threadIdx.x; i < rows * width; i += block_threads) {
    const int row = i / width, column = i % width;
    if ((p.bias_step[2] && query + row >= p.queries) || (p.bias_step[3] && key + column >= p.keys)) continue;
    float sum = 0;
    for (int r = row; r < (p.bias_step[2] ? row + 1 : block_rows); ++r) {
      for (int c = column; c < (p.bias_step[3] ? column + 1 : columns); ++c) sum += sums[r * pitch + c];
    }
    const int64_t to = first + (query + row) * p.bias_step[2] + (key + column) * p.bias_step[3];
    static_cast<B*>(p.dbias)[to] = static_cast<B>(sum);
  }
}

template <class T, int D>
__global__ void __launch_bounds__(block_threads) bias_slopes_kernel(const __grid_constant__ Problem p) {
  constexpr int N = backward_rows<T, D>, own_bytes = TileOf<T, D, block_rows>::bytes, bytes = TileOf<T, D, N>::bytes;
  extern __shared__ __align__(128) unsigned char memory[];
  const auto queries = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const uint32_t cotangents = queries + own_bytes, keys = cotangents + own_bytes;
  const uint32_t values = keys + bytes;
  auto* sums = reinterpret_cast<float*>(memory + 2 * (own_bytes + bytes));
  const BiasGrid<T, D> grid(p);
  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16, own = warp_row + lane / 4;
  float total[N / 8][4] = {};
  int64_t to = 0;
  int query = 0, key = 0;
  for (int iteration = 0; iteration < grid.iterations(); ++iteration) {
    int block = blockIdx.x, rest = iteration;
    key = grid.key.take(block, rest) * N;
    query = grid.query.take(block, rest) * block_rows;
    const int head = grid.head.take(block, rest), batch = grid.batch.take(block, rest);
    to = batch * p.bias_step[0] + head * p.bias_step[1];
    const Level level = seen_in(p, {query, query + block_rows, key, key + N}, batch, head);
    if (level == none) continue;
    const int64_t row = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + query;
    const int64_t key_row = (static_cast<int64_t>(batch) * p.groups + head / p.per_group()) * p.keys + key;
    const int exist = p.queries - query, keys_exist = p.keys - key;
    __syncthreads();
    using Own = TileOf<T, D, block_rows>;
    using Other = TileOf<T, D, N>;
    Own::copy(queries, static_cast<const T*>(p.query) + row * p.size, exist, p.size);
    Own::copy(cotangents, static_cast<const T*>(p.cotangent) + row * p.value_size, exist, p.value_size);
    Other::copy(keys, static_cast<const T*>(p.key) + key_row * p.size, keys_exist, p.size);
    Other::copy(values, static_cast<const T*>(p.value) + key_row * p.value_size, keys_exist, p.value_size);
    end_copies();
    await_copies<0>();
    __syncthreads();
    const uint2 dropout = dropout_key(p, batch, head);
    const Place at{batch, {head, head}, {query + own, query + own + 8}, key + 2 * (lane % 4), {dropout, dropout}};
    float base[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool exists = own + 8 * half < exist;
      base[half] = exists ? base_of(p.lse[row + own + 8 * half]) : infinity;
      delta[half] = exists ? p.delta[row + own + 8 * half] : 0.0f;
    }
    float shares[N / 8][4] = {}, slopes[N / 8][4] = {};
    multiply_rows<T, D, N>(shares, queries, warp_row, keys);
    make_logits<T, false, N>(p, shares, at, level == all);
    multiply_rows<T, D, N>(slopes, cotangents, warp_row, values);
    make_slopes<false, N>(
        p, shares, slopes, at, [&](int, int e) { return base[e / 2]; }, [&](int, int e) { return delta[e / 2]; });
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) total[j][e] += slopes[j][e];
    }
  }
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      sums[(own + 8 * (e / 2)) * (N + 1) + 8 * j + 2 * (lane % 4) + e % 2] = total[j][e];
    }
  }
  __syncthreads();
  if (!p.bias_step[2]) query = 0;
  if (!p.bias_step[3]) key = 0;
  p.wide_bias ? store_bias<float>(p, sums, N + 1, N, to, query, key) : store_bias<T>(p, sums, N + 1, N, to, query, key);
}

}  // namespace capibara::cuda::attention
