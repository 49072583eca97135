// Rows of logits shared out among the lanes of a warp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace capibara::cuda {

inline constexpr unsigned all_lanes = 0xffffffffu;

inline __device__ float as_float(float value) { return value; }
inline __device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
inline __device__ void store(float* to, float value) { *to = value; }
inline __device__ void store(__nv_bfloat16* to, float value) { *to = __float2bfloat16(value); }

inline __device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(all_lanes, value, step);
  return value;
}

// An unsigned key of the order of lax.top_k: that of the bits, negative numbers reversed.
inline __device__ unsigned key_of(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}

// The logits of a token, expert lane + 32 * i in values[i]; those that do not exist are -infinity.
template <class T, int per_lane>
__device__ void load_row(const T* row, int experts, float (&values)[per_lane]) {
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int expert = threadIdx.x % 32 + 32 * i;
    values[i] = expert < experts ? as_float(row[expert]) : -INFINITY;
  }
}

}  // namespace capibara::cuda
