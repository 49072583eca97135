// Which elements dropout keeps: by Philox, from a key of each head, for the query and the key.
//
// A block of Philox has 15 bits for each of eight elements of 16 queries by 16 keys, those that a thread of tensor
// cores has: two queries eight apart, and of each two neighbouring keys and those eight further.
#pragma once

#include "backends/cuda/attention_problem.h"
#include "backends/cuda/philox.h"
#include "backends/cuda/threefry.h"

namespace capibara::cuda::attention {

__device__ inline uint2 dropout_key(const Problem& p, int batch, int head) {
  constexpr uint32_t stream = 0x61747464;  // kernels::dropout_stream
  if (p.threshold == 0) return {0, 0};
  const uint32_t* own = p.dropout_keys + batch / p.dropout_share * 2;
  return threefry({own[0], own[1]}, static_cast<uint32_t>(batch % p.dropout_share * p.heads + head), stream);
}

// The bit of element e of eight columns j, in the word of a thread; that of its neighbour in a row is 16 further.
template <bool turned>
__host__ __device__ constexpr int bit_of(int j, int e) {
  return (turned ? j + e / 2 * 8 : 2 * j + e / 2) + e % 2 * 16;
}

struct KeptBits {
  uint2 key;
  uint32_t thresholds;  // in both halves

  __device__ KeptBits(const Problem& p, uint2 head_key) : key(head_key), thresholds(p.threshold * 0x10001u) {}

  // The upper bit of each half becomes whether its other bits are at least the threshold.
  __device__ uint32_t compare(uint32_t word) const { return (word | 0x80008000u) - thresholds; }
  // The same bits at `position` of each half.
  __device__ uint32_t compare(uint32_t word, int position) const {
    return compare(word) >> (15 - position) & 0x10001u << position;
  }

  // The counters of a block: of a query, and of the first of two neighbouring keys.
  static __device__ uint32_t query_counter(int query) { return query / 16 * 8 + query % 8; }
  static __device__ uint32_t key_counter(int key) { return key / 16 * 4 + key / 2 % 4; }

  // Of turned tiles: halves are even and odd keys, of which this thread has one, and its bits are of even or odd
  // queries.
  static __device__ uint32_t exchange(uint32_t kept) {
    const uint32_t other = __shfl_xor_sync(0xffffffffu, kept, 4);
    return __byte_perm(kept, other, threadIdx.x / 4 % 2 ? 0x3276 : 0x5410);
  }

  // Of rows `query` and eight further, where the 64 keys from `first` on are columns.
  __device__ uint32_t straight(int query, int first) const {
    const uint32_t row = query_counter(query), column = key_counter(first) + threadIdx.x % 4;
    uint32_t words[4][4], kept = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i][0] = column + 4 * i, words[i][2] = row;
    philox(key, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int w = 0; w < 4; ++w) kept |= compare(words[i][w], bit_of<false>(2 * i + w % 2, w / 2 * 2));
    }
    return kept;
  }

  // Of keys in rows, the 16 of a warp from `first` on, where the 64 queries from `query` on are columns. Two threads
  // have the elements of a block: each makes those of half of the queries, and they exchange bits.
  __device__ uint32_t turned(int query, int first) const {
    const int lane = threadIdx.x % 32, odd = lane / 4 % 2;
    const uint32_t row = query_counter(query) + 2 * (lane % 4) + odd, column = key_counter(first) + lane / 8;
    uint32_t words[4][4], kept = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i][0] = column, words[i][2] = row + 8 * i;
    philox(key, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int w = 0; w < 4; ++w) kept |= compare(words[i][w], bit_of<true>(2 * i + w / 2, w % 2 * 2));
    }
    return exchange(kept);
  }
};

}  // namespace capibara::cuda::attention
