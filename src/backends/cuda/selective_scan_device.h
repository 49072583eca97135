// What the kernels of the selective scan share on the device: numbers, places of threads, rows of B and C.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/selective_scan_split.h"

namespace capibara::cuda {
namespace {

constexpr int threads = scan_threads;
constexpr float log2_e = 1.4426950408889634f;

struct Sizes {
  int length, dim, states, chunk, chunks;
  bool has_softplus;
};

template <class T>
struct Inputs {
  const T *u, *delta, *B, *C, *z;
  const float *A, *D, *bias, *initial;
  const uint8_t* reset;
};

__device__ float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + exp2_fast(-x * log2_e)); }
__device__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(exp2_fast(-fabsf(x) * log2_e)); }

__device__ float as_float(float value) { return value; }
__device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void put(float* to, float value) { *to = value; }
__device__ void put(__nv_bfloat16* to, float value) { *to = __float2bfloat16(value); }

// Which channel and which states a thread has.
template <int Own, int Parts>
struct Place {
  int batch, channel, part;
  bool present;

  __device__ explicit Place(int dim)
      : batch(blockIdx.y),
        channel(blockIdx.x * (threads / Parts) + threadIdx.x / Parts),
        part(threadIdx.x % Parts),
        present(channel < dim) {}
  __device__ int state(int i) const { return part * Own + i; }
};

// The sum over the threads of a channel.
template <int Parts>
__device__ float over_parts(float value) {
#pragma unroll
  for (int bit = 1; bit < Parts; bit *= 2) value += __shfl_xor_sync(0xffffffffu, value, bit);
  return value;
}

// Rows [first, first + count) of B and C into shared memory, [row][width], zeros where there is no state.
template <class T>
__device__ void load_columns(const T* B, const T* C, int64_t first_row, int count, int states, int width, float* to_B,
                             float* to_C) {
  for (int i = threadIdx.x; i < count * width; i += threads) {
    const int row = i / width, n = i % width;
    const int64_t at = (first_row + row) * states + n;
    to_B[i] = n < states ? as_float(B[at]) : 0.0f;
    to_C[i] = n < states ? as_float(C[at]) : 0.0f;
  }
}

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

}  // namespace
}  // namespace capibara::cuda
