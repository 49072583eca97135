// One tile of a matmul per block: operands in stages of shared memory, accumulators in registers, on tensor cores.
//
// Operands are copied asynchronously in four stages of 64 bytes of the inner dimension, swizzled so that neither the
// copies nor the fragment reads have bank conflicts. float32 is split into two parts of 11 bits: three products per
// term, an error of 2^-21; infinite operands give NaN.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/tile_stages.h"

namespace capibara::cuda {

inline __device__ void multiply_bfloat16(float (&sum)[4], const uint32_t (&a)[4], const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
inline __device__ void multiply_parts(float (&sum)[4], const uint32_t (&a)[4], const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

inline __device__ uint32_t rounded(float value) {
  uint32_t bits;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}
// Splits each number into its first 11 bits and the next ones.
inline __device__ void split(const uint32_t (&values)[4], uint32_t (&high)[4], uint32_t (&low)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float value = __uint_as_float(values[i]);
    high[i] = rounded(value);
    const float rest = value - __uint_as_float(high[i]);
    low[i] = rounded(isfinite(value) ? rest : 0.0f);
  }
}

struct Tile {
  int rows, columns, inner;  // sizes that exist
};

// The accumulators of a warp's 64 x 64 elements of the tile. `left` and `right` are the operands' first elements.
template <class T, bool left_crossed, bool right_crossed>
__device__ void multiply(float (&sums)[4][8][4], const T* left, int64_t left_stride, const T* right,
                         int64_t right_stride, const Tile& tile) {
  extern __shared__ __align__(128) unsigned char memory[];
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  using Left = Stage<T, left_crossed>;
  using Right = Stage<T, right_crossed>;
  constexpr int depth = Left::depth;
  const int warp = threadIdx.x / 32, row = warp / 2 * 64, column = warp % 2 * 64;
  const int steps = (tile.inner + depth - 1) / depth;
  auto start = [&](int step) {
    if (step < steps) {
      const uint32_t to = shared + step % stages * 2 * stage_bytes;
      const int64_t first = static_cast<int64_t>(step) * depth;
      const int rest = tile.inner - step * depth;
      Left::copy(to, left + first * (left_crossed ? left_stride : 1), left_stride, tile.rows, rest);
      Right::copy(to + stage_bytes, right + first * (right_crossed ? right_stride : 1), right_stride, tile.columns,
                  rest);
    }
    asm volatile("cp.async.commit_group;");
  };
  for (int step = 0; step < stages - 1; ++step) start(step);
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2));
    __syncthreads();
    start(step + stages - 1);  // into the stage that all warps have finished reading
    const uint32_t stage = shared + step % stages * 2 * stage_bytes;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      uint32_t a[4][4], b[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) load_fragment<T, left_crossed, true>(a[i], stage, row + 16 * i, k);
#pragma unroll
      for (int j = 0; j < 4; ++j) load_fragment<T, right_crossed, false>(b[j], stage + stage_bytes, column + 16 * j, k);
      if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int j = 0; j < 8; ++j) multiply_bfloat16(sums[i][j], a[i], b[j / 2] + j % 2 * 2);
        }
      } else {
        uint32_t b_high[4][4], b_low[4][4];
#pragma unroll
        for (int j = 0; j < 4; ++j) split(b[j], b_high[j], b_low[j]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          uint32_t a_high[4], a_low[4];
          split(a[i], a_high, a_low);
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            multiply_parts(sums[i][j], a_low, b_high[j / 2] + j % 2 * 2);
            multiply_parts(sums[i][j], a_high, b_low[j / 2] + j % 2 * 2);
            multiply_parts(sums[i][j], a_high, b_high[j / 2] + j % 2 * 2);
          }
        }
      }
    }
  }
}

inline __device__ void store_pair(float* to, float x, float y) { *reinterpret_cast<float2*>(to) = {x, y}; }
inline __device__ void store_pair(__nv_bfloat16* to, float x, float y) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(x, y);
}

template <class T>
__device__ void store_tile(const float (&sums)[4][8][4], T* out, int64_t stride, const Tile& tile) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2 * 64 + lane / 4;
  const int column = warp % 2 * 64 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own = row + 16 * i + 8 * half;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (own < tile.rows && column + 8 * j < tile.columns)
          store_pair(out + own * stride + column + 8 * j, sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
    }
  }
}

}  // namespace capibara::cuda
