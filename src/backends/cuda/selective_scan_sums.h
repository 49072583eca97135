// Sums over channels, which the gradients of B and C are: over a warp, a block and all blocks.
#pragma once

#include "backends/cuda/selective_scan_device.h"

namespace capibara::cuda {
namespace {

// Adds `Count` numbers over the channels of a warp. A thread is left with Count * Parts / 32 of the sums, at least one:
// those from the index returned on.
template <int Count, int Parts>
__device__ int over_channels(float (&values)[Count]) {
  int first = 0;
#pragma unroll
  for (int bit = 16, left = Count; bit >= Parts; bit /= 2) {
    const bool upper = threadIdx.x & bit;
    left /= 2;
#pragma unroll
    for (int i = 0; i < Count / 2; ++i) {
      if (i >= left) break;
      const float sent = upper ? values[i] : values[i + left], kept = upper ? values[i + left] : values[i];
      values[i] = kept + __shfl_xor_sync(0xffffffffu, sent, bit);
    }
    if (upper) first += left;
  }
  return first;
}

// dB and dC: the blocks' sums, added in order.
template <class T>
__global__ void add_blocks(const float* sums, T* dB, T* dC, int64_t rows, int length, int states, int width,
                           int blocks) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= rows * 2 * width) return;
  const int64_t row = i / (2 * width), batch = row / length, t = row % length;
  const int value = static_cast<int>(i % (2 * width)), n = value % width;
  if (n >= states) return;
  float sum = 0;
  for (int block = 0; block < blocks; ++block) sum += sums[((batch * blocks + block) * length + t) * 2 * width + value];
  put((value < width ? dB : dC) + row * states + n, sum);
}

// The sums of a block's warps for `steps` steps, [step][warp][numbers], to [step][numbers].
template <int warps, int numbers>
__device__ void write_steps(const float* partial, int steps, float* to) {
  for (int i = threadIdx.x; i < steps * numbers; i += threads) {
    const int step = i / numbers, number = i % numbers;
    float sum = 0;
    for (int w = 0; w < warps; ++w) sum += partial[(step * warps + w) * numbers + number];
    to[i] = sum;
  }
}

}  // namespace
}  // namespace capibara::cuda
