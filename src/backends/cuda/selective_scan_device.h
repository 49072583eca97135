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

// What the backward kernel reads besides, and what it writes.
template <class T>
struct Gradients {
  const T* dy;
  const float *dlast, *starts;
  T *du, *ddelta, *dz;
  float *dA, *dD, *dbias, *dinitial;
  float* sums;  // [batch][blocks][length][2][width]
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

}  // namespace
}  // namespace capibara::cuda
