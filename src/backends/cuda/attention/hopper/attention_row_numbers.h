// Numbers of the queries that a stage brings to a worker whose rows are keys.
#pragma once

#include "backends/cuda/attention/attention_slopes.h"

namespace capibara::cuda::attention {

// Of the queries of a stage: what logits are taken relative to, and delta. Rows that do not exist have
// zeros: their cotangents are zeros too.
struct RowNumbers {
  float2 base[32], delta[32];

  // A thread of the copier has one of them.
  __device__ void write(float value, float unit, float of_delta) {
    reinterpret_cast<float*>(this)[threadIdx.x] = threadIdx.x < 64 ? base_of(value, unit) : value * of_delta;
  }
};

inline __device__ float2 load_pair(uint32_t address) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(address) : "memory");
  return pair;
}

// Of a thread's eight pairs of queries, and the same for both of its keys.
inline __device__ void load_numbers(float2 (&numbers)[8], uint32_t from) {
#pragma unroll
  for (int j = 0; j < 8; ++j) numbers[j] = load_pair(from + 32 * j);
}
inline __device__ void spread_numbers(float (&to)[8][4], uint32_t from) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 pair = load_pair(from + 32 * j);
    to[j][0] = to[j][2] = pair.x, to[j][1] = to[j][3] = pair.y;
  }
}

}  // namespace capibara::cuda::attention
