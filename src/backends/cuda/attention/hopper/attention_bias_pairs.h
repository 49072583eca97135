// A bias in pieces of 16 bytes as the kernel of its slopes reads it, in pairs.
#pragma once

#include "backends/cuda/attention/hopper/attention_bias_copies.h"

namespace capibara::cuda::attention {

// The bias of a thread's elements in a tile of 64 x 64, in pairs.
template <class T>
struct BiasPairs {
  uint32_t words[8][2];

  __device__ void load(const Problem& p, const BiasPlace& at, int row, int column) {
    const T* from = static_cast<const T*>(p.bias) + at.batch * p.bias_step[0] + at.head * p.bias_step[1];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const T* own = from + min(row + 8 * half, p.queries - 1) * p.bias_step[2];
#pragma unroll
      for (int j = 0; j < 8; ++j)
        words[j][half] = __ldg(reinterpret_cast<const uint32_t*>(own + min(column + 8 * j, p.keys - 2)));
    }
  }
  // Products become logits to the base 2.
  __device__ void add(float (&logits)[8][4], float scale) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 pair = unpacked_pair<T>(words[j][half]);
        logits[j][2 * half] = logits[j][2 * half] * scale + pair.x * log2e;
        logits[j][2 * half + 1] = logits[j][2 * half + 1] * scale + pair.y * log2e;
      }
    }
  }
};

}  // namespace capibara::cuda::attention
