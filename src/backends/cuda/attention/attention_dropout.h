// Which elements dropout keeps: by Philox, from a key of each head, for the query and the key.
//
// Bits are made 32 at a time, for two queries eight apart by the 16 keys from a multiple of 16 on: words of Philox are
// binary digits of 32 numbers, which logic compares with the threshold all at once. Threads of tensor cores have a
// nibble each of eight such words, so that every thread makes one and they exchange nibbles.
#pragma once

#include <cstdint>

#include "backends/cuda/attention/attention_problem.h"
#include "backends/cuda/threefry.h"

// Counter-based random bits: Philox-4x32 with 7 rounds, the fewest that pass the tests of TestU01.

namespace capibara::cuda {

// Of several blocks, whose multiplications do not wait for each other: counters (words[i][0], 0, words[i][2], 0) become
// four words each.
template <int N>
__device__ inline void philox(uint2 key, uint32_t (&words)[N][4]) {
  constexpr uint32_t first_factor = 0xd2511f53u, second_factor = 0xcd9e8d57u;
#pragma unroll
  for (int i = 0; i < N; ++i) words[i][1] = words[i][3] = 0;
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    const uint32_t first_key = key.x + round * 0x9e3779b9u, second_key = key.y + round * 0xbb67ae85u;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const uint64_t first = static_cast<uint64_t>(first_factor) * words[i][0];
      const uint64_t second = static_cast<uint64_t>(second_factor) * words[i][2];
      words[i][0] = static_cast<uint32_t>(second >> 32) ^ words[i][1] ^ first_key;
      words[i][1] = static_cast<uint32_t>(second);
      words[i][2] = static_cast<uint32_t>(first >> 32) ^ words[i][3] ^ second_key;
      words[i][3] = static_cast<uint32_t>(first);
    }
  }
}

}  // namespace capibara::cuda

namespace capibara::cuda::attention {

__device__ inline uint2 dropout_key(const Problem& p, int batch, int head) {
  constexpr uint32_t stream = 0x61747464;  // kernels::dropout_stream
  if (p.threshold == 0) return {0, 0};
  const uint32_t* own = p.dropout_keys + batch / p.dropout_share * 2;
  return threefry({own[0], own[1]}, static_cast<uint32_t>(batch % p.dropout_share * p.heads + head), stream);
}

// The bit of element e of eight columns j, in the word of a thread; that of its neighbour in a row is 8 further. A
// nibble has two queries eight apart (bit 0) and two keys eight apart (bit 1).
template <bool turned>
__host__ __device__ constexpr int bit_of(int j, int e) {
  return j / 4 * 16 + e % 2 * 8 + j / 2 % 2 * 4 + (turned ? e / 2 * 2 + j % 2 : j % 2 * 2 + e / 2);
}

struct KeptBits {
  const Problem& p;
  uint2 key;

  // The counters of a word: of a query, and of a key.
  static __device__ uint32_t query_counter(int query) { return query / 16 * 8 + query % 8; }
  static __device__ uint32_t key_counter(int key) { return key / 16; }
  // The first bit of a key's nibble in a word.
  static __device__ int nibble_of(int key) { return key / 4 % 2 * 16 + key % 2 * 8 + key / 2 % 2 * 4; }

  // Where the digits of a threshold are 1 both must be, where they are 0 one suffices: which numbers are not less.
  __device__ uint32_t compare(const uint32_t (&digits)[4], uint32_t kept, int place) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t any = p.threshold_digits[place + i];
      kept = (digits[i] & kept) | (any & (digits[i] | kept));
    }
    return kept;
  }
  // Of the query and the one eight further, and 16 keys: src/kernels/attention/blockwise.cpp says which digits the
  // words of a block are.
  __device__ uint32_t word(uint32_t query_counter, uint32_t key_counter) const {
    uint32_t words[1][4] = {{key_counter, 0, query_counter, 0}}, mixed[4];
    philox(key, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) mixed[i] = words[0][i] ^ further(words[0][(i + 1) % 4], 24);
    uint32_t kept = compare(words[0], further(compare(mixed, ~0u, 0), 13), 4);
    kept = compare(mixed, further(kept, 11), 8);
    return compare(words[0], further(kept, 13), 12);
  }
  // The bits so much further, in the place of each.
  static __device__ uint32_t further(uint32_t word, int bits) { return __funnelshift_r(word, word, bits); }

  // Threads whose numbers differ in bit `other` exchange halves, bytes or nibbles: what was in part i of thread j is in
  // part j of thread i.
  static __device__ uint32_t exchange_halves(uint32_t own, int other) {
    const uint32_t theirs = __shfl_xor_sync(0xffffffffu, own, other);
    return __byte_perm(own, theirs, threadIdx.x & other ? 0x3276 : 0x5410);
  }
  static __device__ uint32_t exchange_bytes(uint32_t own, int other) {
    const uint32_t theirs = __shfl_xor_sync(0xffffffffu, own, other);
    return __byte_perm(own, theirs, threadIdx.x & other ? 0x3715 : 0x6240);
  }
  static __device__ uint32_t exchange_nibbles(uint32_t own, int other) {
    const uint32_t theirs = __shfl_xor_sync(0xffffffffu, own, other), upper = threadIdx.x & other ? ~0u : 0u;
    const uint32_t moved = __funnelshift_l(theirs, theirs, upper & 24 | 4), keep = 0x0f0f0f0fu ^ upper;
    return (own & keep) | (moved & ~keep);
  }

  // Of rows `query` and eight further, where the 64 keys from `first` on are columns.
  __device__ uint32_t straight(int query, int first) const {
    const uint32_t own = word(query_counter(query), key_counter(first) + threadIdx.x % 4);
    return exchange_nibbles(exchange_halves(own, 2), 1);
  }

  // Of keys in rows, the 16 of a warp from `first` on, where the 64 queries from `query` on are columns.
  __device__ uint32_t turned(int query, int first) const {
    const int lane = threadIdx.x % 32;
    const uint32_t row = query_counter(query) + lane / 8 * 8 + lane % 4 * 2 + lane / 4 % 2;
    const uint32_t own = word(row, key_counter(first));
    return exchange_nibbles(exchange_bytes(exchange_halves(own, 16), 4), 8);
  }
};

}  // namespace capibara::cuda::attention
