// Dropout of a tile in registers by kernels that compute its bits with it.
#pragma once

#include "backends/cuda/attention_logits.h"

namespace capibara::cuda::attention {

// Calls apply(j, e, whether the element is kept). A block of Philox serves what one thread has of 16 keys and of two
// queries eight apart; where rows are packed, those of a thread may be others, and each needs a block. Of turned tiles
// two threads have the elements of a block: each makes the block of one query and they exchange halves.
template <bool turned, int N, class F>
__device__ void drop(const Problem& p, const Place& at, F&& apply) {
  const int lane = threadIdx.x % 32;
  if constexpr (!turned) {
    const bool near = at.row[1] == at.row[0] + 8 && at.row[0] % 16 < 8 && at.head[0] == at.head[1];
#pragma unroll
    for (int j = 0; j < N / 16; ++j) {
      uint32_t words[1][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const KeptBits bits(p, at.dropout[half]);
        if (half == 0 || !near) {
          words[0][0] = KeptBits::key_counter(at.column + 16 * j), words[0][2] = KeptBits::query_counter(at.row[half]);
          philox(bits.key, words);
        }
        const bool upper = at.row[half] / 8 % 2;
#pragma unroll
        for (int further = 0; further < 2; ++further) {
          const uint32_t kept = bits.compare(upper ? words[0][2 + further] : words[0][further]);
          apply(2 * j + further, 2 * half, kept >> 15 & 1);
          apply(2 * j + further, 2 * half + 1, kept >> 31);
        }
      }
    }
  } else {
    const int odd = lane / 4 % 2;
    const KeptBits bits(p, at.dropout[0]);
#pragma unroll
    for (int j = 0; j < N / 16; ++j) {
      const int query = at.column + 16 * j + odd, key = at.row[0] - lane / 4 + lane / 8 * 2;
      uint32_t words[1][4] = {{KeptBits::key_counter(key), 0, KeptBits::query_counter(query), 0}}, own = 0;
      philox(bits.key, words);
#pragma unroll
      for (int w = 0; w < 4; ++w) own |= bits.compare(words[0][w], bit_of<true>(w / 2, w % 2 * 2));
      const uint32_t kept = bits.exchange(own);
#pragma unroll
      for (int next = 0; next < 2; ++next) {
#pragma unroll
        for (int e = 0; e < 4; ++e) apply(2 * j + next, e, kept >> bit_of<true>(next, e) & 1);
      }
    }
  }
}

}  // namespace capibara::cuda::attention
