// A mask as bits: made of its bytes once by a kernel of its own, and read a word at a time by those of warpgroups.
#pragma once

#include "backends/cuda/attention/attention_problem.h"

namespace capibara::cuda::attention {

// Of 16 bytes that are 0 or 1, the bits.
inline __device__ uint32_t bits_of(const uint4& bytes) {
  const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) bits |= words[i] * 0x10204080u >> 28 << 4 * i;
  return bits;
}

// Words of a row of keys.
inline __host__ __device__ int mask_words(const Problem& p) { return (p.keys + 63) / 64; }

inline __device__ const uint64_t* mask_bits_at(const Problem& p, int batch, int head, int query, int key) {
  const int64_t row = batch * p.mask_row[0] + head * p.mask_row[1] + query * p.mask_row[2];
  return p.mask_bits + row * mask_words(p) + key / 64;
}

// The word of a query and the 64 keys from `key` on, all ones where there is no mask.
inline __device__ uint64_t mask_word(const Problem& p, int batch, int head, int query, int key) {
  if (!p.mask || query >= p.queries || key >= p.keys) return ~uint64_t{0};
  return __ldg(mask_bits_at(p, batch, head, query, key));
}

// A thread makes the bits of 16 keys.
static __global__ void mask_bits_kernel(const __grid_constant__ Problem p) {
  const int pieces = 4 * mask_words(p);
  const int64_t piece = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (piece >= p.mask_rows * pieces) return;
  const int key = static_cast<int>(piece % pieces) * 16;
  const uint8_t* row = p.mask + piece / pieces * (p.mask_step[3] ? p.keys : 1);
  uint32_t bits = 0;
  if (p.mask_step[3] == 1 && p.keys % 16 == 0) {
    if (key < p.keys) bits = bits_of(*reinterpret_cast<const uint4*>(row + key));
  } else {
    for (int i = 0; i < 16 && key + i < p.keys; ++i) bits |= (row[(key + i) * p.mask_step[3]] != 0) << i;
  }
  reinterpret_cast<uint16_t*>(p.mask_bits)[piece] = static_cast<uint16_t>(bits);
}

}  // namespace capibara::cuda::attention
