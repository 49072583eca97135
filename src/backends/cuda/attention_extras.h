// What the tiles of warpgroups read beside their operands: masks, and pairs of a bias, loaded while products run.
#pragma once

#include "backends/cuda/attention_masks.h"

namespace capibara::cuda::attention {

template <class T>
__device__ float2 unpacked_pair(uint32_t word) {
  T pair[2];
  *reinterpret_cast<uint32_t*>(pair) = word;
  return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

// Pairs of neighbouring keys of a thread's two rows of queries.
template <class T>
struct BiasPairs {
  uint32_t words[8][2];

  static __device__ bool takes(const Problem& p) { return !p.wide_bias && p.bias_step[3] == 1 && p.keys % 2 == 0; }

  __device__ void load(const Problem& p, const Place& at) {
    const T* bias = static_cast<const T*>(p.bias) + at.batch * p.bias_step[0] + at.head[0] * p.bias_step[1];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const T* row = bias + min(at.row[half], p.queries - 1) * p.bias_step[2];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int key = at.column + 8 * j;
        words[j][half] = key < p.keys ? __ldg(reinterpret_cast<const uint32_t*>(row + key)) : 0;
      }
    }
  }
  __device__ void add(const Problem& p, float (&logits)[8][4]) const {
    const float scale = p.scale * log2e;
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

// Products that nothing is added to are scaled in the exponent.
inline __device__ float factor_of(const Problem& p) { return p.bias || !(p.scale > 0) ? 1.0f : p.scale * log2e; }

// What a tile of 64 x 64 reads beside its operands: the bias is loaded while products run.
// `rich`: with whatever there is; else nothing but masks that come through shared memory, positions and patterns, which
// leaves registers to the sums.
template <class T, bool turned, bool rich = true>
struct Extras {
  BiasPairs<T> bias;
  bool has_bias;

  static bool suffices(const Problem& p) {
    const bool copied = p.mask_step[3] == 1 && p.keys % 16 == 0;
    return !p.bias && p.scale > 0 && !p.query_segments && p.threshold == 0 && (!p.mask || copied);
  }

  __device__ void load(const Problem& p, const Place& at) {
    has_bias = rich && !turned && p.bias && BiasPairs<T>::takes(p);
    if (has_bias) bias.load(p, at);
  }
  __device__ void apply(const Problem& p, float (&logits)[8][4], const Place& at, bool whole, uint32_t mask,
                        int worker) const {
    if constexpr (rich) {
      if (has_bias)
        bias.add(p, logits);
      else if (p.bias || !(p.scale > 0))
        scale_logits<T, turned, 64>(p, logits, at);
    }
    if (!whole) hide_unseen<turned, 64, rich>(p, logits, at);
    if (MaskBits<turned>::takes(p)) {
      MaskBits<turned> bits;
      bits.load(mask, worker);
      bits.hide(logits);
    } else if constexpr (rich) {
      if (p.mask) hide_by_mask<turned, 64>(p, logits, at);
    }
  }
};

}  // namespace capibara::cuda::attention
