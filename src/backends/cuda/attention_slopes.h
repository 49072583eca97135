// The slopes of a tile's logits in registers: shares from the log-sum-exp of each row, then the softmax backwards.
#pragma once

#include "backends/cuda/attention_logits.h"

namespace capibara::cuda::attention {

// What a row's logits to the base 2 are taken relative to. Rows that see nothing have no seen logits.
inline __device__ float base_of(float lse) { return lse == -infinity ? 0.0f : lse * log2e; }

// Logits, which times `factor` are to the base 2, become shares, products with the cotangent become slopes of the
// logits; shares that are dropped become 0.
template <bool turned, int N, bool rich = true, class Base, class Delta>
__device__ void make_slopes(const Problem& p, float (&shares)[N / 8][4], float (&slopes)[N / 8][4], const Place& at,
                            Base&& base, Delta&& delta, float factor = 1.0f) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) shares[j][e] = power_of_two(shares[j][e] * factor - base(j, e));
  }
  auto slope = [&](int j, int e, bool kept) {
    const float product = kept ? slopes[j][e] * p.keep_scale : 0.0f;
    slopes[j][e] = shares[j][e] * (product - delta(j, e));
    shares[j][e] = kept ? shares[j][e] : 0.0f;
  };
  if constexpr (rich) {
    if (p.threshold > 0) return drop<turned, N>(p, at, slope);
  }
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) slopes[j][e] = shares[j][e] * (slopes[j][e] - delta(j, e));
  }
}

}  // namespace capibara::cuda::attention
