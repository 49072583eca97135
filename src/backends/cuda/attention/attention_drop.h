// Dropout of a tile in registers, for kernels that compute the dropout bits along the way.
#pragma once

#include "backends/cuda/attention/attention_logits.h"

namespace capibara::cuda::attention {

// Calls apply(j, e, kept) for each element. The elements of a word of bits belong to four threads, in transposed tiles
// to eight: each thread computes one word, for 64 columns, and reads the others'. With packed rows, a thread's rows may
// be arbitrary, and each has its own word.
template <bool turned, int N, class F>
__device__ void drop(const Problem& p, const Place& at, F&& apply) {
  const int lane = threadIdx.x % 32;
  auto of = [](uint32_t word, int thread) { return __shfl_sync(0xffffffffu, word, thread); };
#pragma unroll
  for (int first = 0; first < N; first += 64) {
    constexpr int tiles = N < 64 ? N / 16 : 4;
    if constexpr (!turned) {
      const bool near = at.row[1] == at.row[0] + 8 && at.row[0] % 16 < 8 && at.head[0] == at.head[1];
      const uint32_t column = KeptBits::key_counter(at.column + first) + lane % 4;
      uint32_t words[2];
      words[0] = words[1] = KeptBits{p, at.dropout[0]}.word(KeptBits::query_counter(at.row[0]), column);
      if (!near) words[1] = KeptBits{p, at.dropout[1]}.word(KeptBits::query_counter(at.row[1]), column);
      const int nibble = KeptBits::nibble_of(2 * (lane % 4));
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint32_t kept = of(words[half], lane / 4 * 4 + j) >> (nibble + at.row[half] / 8 % 2);
#pragma unroll
          for (int i = 0; i < 4; ++i)
            apply(first / 8 + 2 * j + i / 2, 2 * half + i % 2, kept >> (i / 2 * 2 + i % 2 * 8) & 1);
        }
      }
    } else {
      const int query = at.column - 2 * (lane % 4) + first, nibble = KeptBits::nibble_of(lane / 4);
      const uint32_t row = KeptBits::query_counter(query) + lane;  // four tiles of eight words
      const uint32_t word = KeptBits{p, at.dropout[0]}.word(row, KeptBits::key_counter(at.row[0]));
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const uint32_t kept = of(word, 8 * j + 2 * (lane % 4) + odd) >> nibble;
#pragma unroll
          for (int i = 0; i < 4; ++i) apply(first / 8 + 2 * j + i % 2, 2 * (i / 2) + odd, kept >> i & 1);
        }
      }
    }
  }
}

}  // namespace capibara::cuda::attention
