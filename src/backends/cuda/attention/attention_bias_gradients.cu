// Launches the kernel for the gradients of the bias on NVIDIA GPUs.
#include <type_traits>

#include "backends/cuda/attention/attention_backward.h"
#include "backends/cuda/attention/attention_bias_grid.h"
#include "backends/cuda/attention/attention_start.h"

// The gradients of attention's bias: those of the logits, summed over the axes along which the bias is broadcast, in a
// fixed order.

namespace capibara::cuda::attention {

// A thread block has a tile of 64 queries by `backward_rows` keys.
template <class T, int D>
inline constexpr int bias_block_bytes =
    2 * (block_rows + backward_rows<T, D>)*D* static_cast<int>(sizeof(T)) + block_rows*(backward_rows<T, D> + 1) * 4;

template <class T, int D>
__global__ void __launch_bounds__(block_threads) bias_gradients_kernel(const __grid_constant__ Problem p) {
  constexpr int N = backward_rows<T, D>, own_bytes = TileOf<T, D, block_rows>::bytes, bytes = TileOf<T, D, N>::bytes;
  extern __shared__ __align__(128) unsigned char memory[];
  const auto queries = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const uint32_t cotangents = queries + own_bytes, keys = cotangents + own_bytes;
  const uint32_t values = keys + bytes;
  auto* sums = reinterpret_cast<float*>(memory + 2 * (own_bytes + bytes));
  const BiasGrid grid(p, block_rows, N);
  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16, own = warp_row + lane / 4;
  float total[N / 8][4] = {};
  BiasPlace place{};
  for (int iteration = 0; iteration < grid.iterations(); ++iteration) {
    place = grid.place(blockIdx.x, iteration);
    const auto [batch, head, query, key] = place;
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
    float shares[N / 8][4] = {}, gradients[N / 8][4] = {};
    multiply_rows<T, D, N>(shares, queries, warp_row, keys);
    make_logits<T, false, N>(p, shares, at, level == all);
    multiply_rows<T, D, N>(gradients, cotangents, warp_row, values);
    make_gradients<false, N>(
        p, shares, gradients, at, [&](int, int e) { return base[e / 2]; }, [&](int, int e) { return delta[e / 2]; });
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) total[j][e] += gradients[j][e];
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
  const int64_t to = place.batch * p.bias_step[0] + place.head * p.bias_step[1];
  store_bias<T, block_rows, N>(p, sums, to, place.query, place.key, threadIdx.x, block_threads);
}

cudaError_t start_bias_gradients(const Problem& problem, Element element, cudaStream_t stream) {
  return by_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    const dim3 grid(static_cast<unsigned>(BiasGrid(problem, block_rows, backward_rows<T, D>).blocks()));
    return start(bias_gradients_kernel<T, D>, grid, block_threads, bias_block_bytes<T, D>, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
