// Sums over channels, which the gradients of B and C are, by tensor cores; and sums over blocks and segments.
#pragma once

#include "backends/cuda/recurrence/selective_scan_device.h"

namespace capibara::cuda {
namespace {

// Sums of 16 numbers over the lanes of a warp, as a product with ones: row m of the result has number m, summed over
// four lanes in each of its 8 columns. The operands of tensor cores have 11 bits: `exact` adds what is left of them.
struct LaneSums {
  float ones[8];  // 1 in lanes of row r

  __device__ LaneSums() {
#pragma unroll
    for (int r = 0; r < 8; ++r) ones[r] = static_cast<int>(threadIdx.x % 32 / 4) == r ? 1.0f : 0.0f;
  }
  __device__ static void multiply(float (&c)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
          "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
  }
  // Numbers 2j and 2j + 1.
  __device__ void add_pair(float (&c)[4], int j, float first, float second) const {
    if (j < 4)
      multiply(c, ones[2 * j], 0, ones[2 * j + 1], 0, first, second);
    else
      multiply(c, 0, ones[2 * j - 8], 0, ones[2 * j - 7], first, second);
  }
  __device__ static float head(float value) { return __uint_as_float(__float_as_uint(value) & 0xffffe000u); }

  // In all lanes of row r: the sums of numbers r and r + 8.
  template <bool exact>
  __device__ float2 of(const float (&values)[16]) const {
    float upper[4] = {0, 0, 0, 0}, lower[4] = {0, 0, 0, 0};  // of rows to 8 and from 8 on: two chains
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float first = values[2 * j], second = values[2 * j + 1];
      float(&sum)[4] = j < 4 ? upper : lower;
      if constexpr (exact) {
        add_pair(sum, j, first - head(first), second - head(second));
        add_pair(sum, j, head(first), head(second));
      } else {
        add_pair(sum, j, first, second);
      }
    }
    float2 sums{upper[0] + upper[1], lower[2] + lower[3]};
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      sums.x += __shfl_xor_sync(0xffffffffu, sums.x, step);
      sums.y += __shfl_xor_sync(0xffffffffu, sums.y, step);
    }
    return sums;
  }
};

// dB and dC: the blocks' sums, [batch][blocks][length][2][width], added in order.
template <class T>
__global__ void __launch_bounds__(128)
    add_blocks(const float* sums, T* dB, T* dC, int64_t rows, int length, int states, int width, int blocks) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x;
  if (i >= rows * 2 * width) return;
  const int64_t row = i / (2 * width), batch = row / length, t = row % length;
  const int value = static_cast<int>(i % (2 * width)), n = value % width;
  if (n >= states) return;
  const float* from = sums + (batch * blocks * length + t) * 2 * width + value;
  const int64_t step = static_cast<int64_t>(length) * 2 * width;
  float sum = 0;
#pragma unroll 8
  for (int block = 0; block < blocks; ++block) sum += from[block * step];
  (value < width ? dB : dC)[row * states + n] = from_float<T>(sum);
}

// dA, dD and dbias: the segments' sums, [batch][segments][dA, dD, dbias], added in order.
__global__ void __launch_bounds__(128)
    add_segments(const float* partial, float* dA, float* dD, float* dbias, int dim, int states, int segments) {
  const int64_t own = static_cast<int64_t>(states + added_rows) * dim,
                i = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x;
  const int64_t batch = blockIdx.y, matrix = static_cast<int64_t>(states) * dim;
  if (i >= own) return;
  float sum = 0;
  for (int segment = 0; segment < segments; ++segment) sum += partial[(batch * segments + segment) * own + i];
  if (i < matrix)
    dA[batch * matrix + i] = sum;
  else
    (i < matrix + dim ? dD : dbias - dim)[batch * dim + i - matrix] = sum;
}

}  // namespace
}  // namespace capibara::cuda
