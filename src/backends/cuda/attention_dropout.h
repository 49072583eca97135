// Which elements of a tile of 64 x 64 dropout keeps, as the bits of a thread of the warpgroup that computes it.
//
// A block of threefry has 16 bits for each of four elements of a query: two neighbouring keys, and those eight further.
#pragma once

#include "backends/cuda/attention_threefry.h"

namespace capibara::cuda::attention {

// The bit of element e of eight columns j, in the word of a thread.
template <bool turned>
__host__ __device__ constexpr int bit_of(int j, int e) {
  return turned ? j + e % 2 * 16 + e / 2 * 8 : j % 4 * 8 + j / 4 * 2 + e / 2 * 4 + e % 2;
}

// Four blocks at a time, whose rounds do not wait for each other.
struct KeptBits {
  uint2 key;
  uint32_t limit;  // the threshold, in the upper half of a word

  __device__ uint32_t low(uint32_t word, int bit) const { return word << 16 >= limit ? 1u << bit : 0; }
  __device__ uint32_t high(uint32_t word, int bit) const { return word >= limit ? 1u << bit : 0; }

  // Of rows `query` and eight further, where the keys from `first` on are columns.
  __device__ uint32_t straight(int query, int first) const {
    const uint32_t counter = first / 16 * 4 + threadIdx.x % 4;
    uint32_t word = 0;
#pragma unroll 1
    for (int part = 0; part < 2; ++part) {
      uint32_t x[4], y[4], bits = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = query + i % 2 * 8, y[i] = counter + 8 * part + i / 2 * 4;
      threefry(key, x, y);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = bit_of<false>(i / 2 * 2, i % 2 * 2), next = bit_of<false>(i / 2 * 2 + 1, i % 2 * 2);
        bits |= low(x[i], at) | high(x[i], at + 1) | low(y[i], next) | high(y[i], next + 1);
      }
      word |= bits << 2 * part;
    }
    return word;
  }

  // Of keys in rows, the 16 of a warp from `first` on, where the queries from `query` on are columns. Two threads have
  // the elements of a block: each makes the blocks of half of the queries, and they exchange bits.
  __device__ uint32_t turned(int query, int first) const {
    const int lane = threadIdx.x % 32;
    const bool odd = lane / 4 & 1;
    const uint32_t counter = first / 16 * 4 + lane / 8;
    uint32_t evens = 0, odds = 0;
#pragma unroll 1
    for (int part = 0; part < 2; ++part) {
      uint32_t x[4], y[4], even_bits = 0, odd_bits = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = query + 32 * part + 8 * i + 2 * (lane % 4) + odd, y[i] = counter;
      threefry(key, x, y);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        even_bits |= low(x[i], i) | low(y[i], i + 8);
        odd_bits |= high(x[i], i) | high(y[i], i + 8);
      }
      evens |= even_bits << 4 * part;
      odds |= odd_bits << 4 * part;
    }
    const uint32_t own = odd ? odds << 16 : evens, other = odd ? evens << 16 : odds;
    return own | __shfl_xor_sync(0xffffffffu, other, 4);
  }
};

}  // namespace capibara::cuda::attention
