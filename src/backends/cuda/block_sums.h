// Sums over the threads of a block.
#pragma once

#include <cuda_runtime.h>

namespace capibara::cuda {
namespace {

// Numbers that the warps of a block tell each other. Two sets, used in turns: one barrier for each exchange.
template <class Value>
struct Exchange {
  Value values[2][32];
};

// A warp's part of the sums of two numbers over a block; `turn` counts the sums.
inline __device__ void tell_sums(float a, float b, Exchange<float2>& exchange, int turn) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    a += __shfl_xor_sync(0xffffffffu, a, step);
    b += __shfl_xor_sync(0xffffffffu, b, step);
  }
  if (threadIdx.x % 32 == 0) exchange.values[turn % 2][threadIdx.x / 32] = {a, b};
}

// The sums that all warps have told, once they have.
inline __device__ float2 told_sums(const Exchange<float2>& exchange, int turn) {
  __syncthreads();
  float2 total{0, 0};
  for (int i = 0; i < static_cast<int>(blockDim.x + 31) / 32; ++i) {
    total.x += exchange.values[turn % 2][i].x;
    total.y += exchange.values[turn % 2][i].y;
  }
  return total;
}

inline __device__ float2 block_sums(float a, float b, Exchange<float2>& exchange, int turn) {
  tell_sums(a, b, exchange, turn);
  return told_sums(exchange, turn);
}

}  // namespace
}  // namespace capibara::cuda
