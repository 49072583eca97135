// What the backward kernel of the state space dual keeps in shared memory, and sums of it.
#pragma once

#include "backends/cuda/recurrence/ssd_decays.h"
#include "backends/cuda/recurrence/ssd_tiles.h"

namespace capibara::cuda {
namespace {

template <int states>
struct SsdBackwardMemory {
  struct Stage {
    __nv_bfloat16 x[ssd_chunk * ssd_dim], dy[ssd_chunk * ssd_dim], B[ssd_chunk * states], C[ssd_chunk * states];
  };
  Stage stages[2];
  __nv_bfloat16 start[states * ssd_dim], slope[states * ssd_dim];
  __nv_bfloat16 weights[ssd_chunk * ssd_chunk], dscores[ssd_chunk * ssd_chunk];
  Decays decays[2];
  // For each step, of the warps that have a part of it: sums of dy * y, of driven * its slope by outputs of the chunk,
  // of x * its slope by the state, and of x * driven's slope.
  float received[2][ssd_chunk], given[4][ssd_chunk], sent[2][ssd_chunk], along[2][ssd_chunk];
  float before[2][8], dD[8];  // of warps: state * its slope, for a chunk and the one before it; dy * x
};

inline __device__ float over_quad(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}
inline __device__ float over_warp(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// dB and dC, [batch * length][groups][states]: the sums over the heads of a group, in order; eight states for a thread.
__global__ void __launch_bounds__(256) add_heads(const __nv_bfloat16* dB, const __nv_bfloat16* dC, __nv_bfloat16* to_B,
                                                 __nv_bfloat16* to_C, int64_t columns, int repeats, int states) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x, pieces = states / 8;
  if (i >= columns * pieces) return;
  const int64_t column = i / pieces, piece = i % pieces;
  const auto* from =
      reinterpret_cast<const Piece<__nv_bfloat16>*>(blockIdx.y ? dC : dB) + column * repeats * pieces + piece;
  float sums[8] = {};
#pragma unroll 8
  for (int head = 0; head < repeats; ++head) {
    const Piece<__nv_bfloat16> own = from[head * pieces];
#pragma unroll
    for (int k = 0; k < 8; ++k) sums[k] += as_float(own.values[k]);
  }
  put_piece((blockIdx.y ? to_C : to_B) + i * 8, sums);
}

}  // namespace
}  // namespace capibara::cuda
