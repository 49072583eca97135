// The elements that dropout keeps: Philox with a key per head, with counters from the query and key positions.
//
// Bits are computed 32 at a time, for two queries eight apart by 16 keys starting at a multiple of 16: Philox words are
// binary digits of 32 numbers, which bitwise logic compares with the threshold at once. In tensor core layouts a thread
// has a nibble of each of eight such words, so every thread computes one word and they exchange nibbles.
#pragma once

#include <cstdint>

#include "backends/cuda/attention/attention_problem.h"
#include "backends/cuda/threefry.h"

// Counter-based random bits: Philox-4x32 with 7 rounds, the minimum that passes TestU01.

namespace capibara::cuda {

// Computes several independent blocks for instruction-level parallelism: counters (words[i][0], 0, words[i][2], 0)
// become four words each.
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

// The bit of element e of eight columns j in a thread's word; its neighbour in the row is 8 bits higher. A
// nibble has two queries eight apart (bit 0) and two keys eight apart (bit 1).
template <bool turned>
__host__ __device__ constexpr int bit_of(int j, int e) {
  return j / 4 * 16 + e % 2 * 8 + j / 2 % 2 * 4 + (turned ? e / 2 * 2 + j % 2 : j % 2 * 2 + e / 2);
}

struct KeptBits {
  const Problem& p;
  uint2 key;

  // The counters of a word, from a query and from a key.
  static __device__ uint32_t query_counter(int query) { return query / 16 * 8 + query % 8; }
  static __device__ uint32_t key_counter(int key) { return key / 16; }
  // The first bit of a key's nibble in a word.
  static __device__ int nibble_of(int key) { return key / 4 % 2 * 16 + key % 2 * 8 + key / 2 % 2 * 4; }

  // Compares one digit after the other: both must be 1 if the threshold's is 1, else either: 1 for numbers not less.
  __device__ uint32_t compare(const uint32_t (&digits)[4], uint32_t kept, int place) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t any = p.threshold_digits[place + i];
      kept = (digits[i] & kept) | (any & (digits[i] | kept));
    }
    return kept;
  }
  // The bits of a query, the one eight rows later, and 16 keys: src/kernels/attention/blockwise.cpp describes which
  // digits the words of a block hold.
  __device__ uint32_t word(uint32_t query_counter, uint32_t key_counter) const {
    uint32_t words[1][4] = {{key_counter, 0, query_counter, 0}}, mixed[4];
    philox(key, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) mixed[i] = words[0][i] ^ further(words[0][(i + 1) % 4], 24);
    uint32_t kept = compare(words[0], further(compare(mixed, ~0u, 0), 13), 4);
    kept = compare(mixed, further(kept, 11), 8);
    return compare(words[0], further(kept, 13), 12);
  }
  // Rotates right: each bit is replaced by the one `bits` higher.
  static __device__ uint32_t further(uint32_t word, int bits) { return __funnelshift_r(word, word, bits); }

  // Threads whose indices differ in bit `other` exchange halves, bytes or nibbles: part i of thread j moves to
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

  // For rows `query` and `query` + 8, with the 64 keys starting at `first` as columns.
  __device__ uint32_t straight(int query, int first) const {
    const uint32_t own = word(query_counter(query), key_counter(first) + threadIdx.x % 4);
    return exchange_nibbles(exchange_halves(own, 2), 1);
  }

  // For rows that are keys, a warp's 16 starting at `first`, with the 64 queries starting at `query` as columns.
  __device__ uint32_t turned(int query, int first) const {
    const int lane = threadIdx.x % 32;
    const uint32_t row = query_counter(query) + lane / 8 * 8 + lane % 4 * 2 + lane / 4 % 2;
    const uint32_t own = word(row, key_counter(first));
    return exchange_nibbles(exchange_bytes(exchange_halves(own, 16), 4), 8);
  }
};

}  // namespace capibara::cuda::attention
