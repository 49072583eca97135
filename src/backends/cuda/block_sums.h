// Sums over the threads of a block.
#pragma once

#include <cuda_runtime.h>

namespace capibara::cuda {
namespace {

// Numbers exchanged by the warps of a block. Two alternating sets, so that one barrier per exchange is enough.
template <class Value>
struct Exchange {
  Value values[2][32];
};

// A warp's part of the sums of two numbers over a block; `iteration` counts the sums.
inline __device__ void publish_sums(float a, float b, Exchange<float2>& exchange, int iteration) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    a += __shfl_xor_sync(0xffffffffu, a, step);
    b += __shfl_xor_sync(0xffffffffu, b, step);
  }
  if (threadIdx.x % 32 == 0) exchange.values[iteration % 2][threadIdx.x / 32] = {a, b};
}

// Waits for all warps and returns the sums of what they published.
inline __device__ float2 published_sums(const Exchange<float2>& exchange, int iteration) {
  __syncthreads();
  float2 total{0, 0};
  for (int i = 0; i < static_cast<int>(blockDim.x + 31) / 32; ++i) {
    total.x += exchange.values[iteration % 2][i].x;
    total.y += exchange.values[iteration % 2][i].y;
  }
  return total;
}

inline __device__ float2 block_sums(float a, float b, Exchange<float2>& exchange, int iteration) {
  publish_sums(a, b, exchange, iteration);
  return published_sums(exchange, iteration);
}

}  // namespace
}  // namespace capibara::cuda
