// The gradients of a tile's logits in registers: shares from each row's log-sum-exp, then the softmax backward.
#pragma once

#include "backends/cuda/attention/attention_drop.h"

namespace capibara::cuda::attention {

// The offset of a row's logits, as base-2 exponents or in other units. Rows that see no keys have no visible
// logits.
inline __device__ float base_of(float lse, float unit = log2e) { return lse == -infinity ? 0.0f : lse * unit; }

// Converts logits, which times `factor` are base-2 exponents, to shares.
template <int N, class Base>
__device__ void make_shares(float (&shares)[N / 8][4], Base&& base, float factor = 1.0f) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) shares[j][e] = power_of_two(shares[j][e] * factor - base(j, e));
  }
}

// Converts products with the cotangent to gradients of the logits; elements without `kept(j, e)` are dropped.
template <int N, class Kept, class Delta>
__device__ void take_gradients(const Problem& p, const float (&shares)[N / 8][4], float (&gradients)[N / 8][4],
                               Kept&& kept, Delta&& delta) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float product = kept(j, e) ? gradients[j][e] : 0.0f;
      gradients[j][e] = shares[j][e] * (product * p.keep_scale - delta(j, e));
    }
  }
}

inline __device__ void multiply_all(float (&values)[8][4], const float (&by)[8][4]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) values[i / 4][i % 4] *= by[i / 4][i % 4];
}

// Both, computing dropout along the way; dropped shares become 0.
template <bool turned, int N, class Base, class Delta>
__device__ void make_gradients(const Problem& p, float (&shares)[N / 8][4], float (&gradients)[N / 8][4],
                               const Place& at, Base&& base, Delta&& delta) {
  make_shares<N>(shares, base);
  if (p.threshold == 0)
    return take_gradients<N>(
        p, shares, gradients, [](int, int) { return true; }, delta);
  drop<turned, N>(p, at, [&](int j, int e, bool kept) {
    const float product = kept ? gradients[j][e] * p.keep_scale : 0.0f;
    gradients[j][e] = shares[j][e] * (product - delta(j, e));
    shares[j][e] = kept ? shares[j][e] : 0.0f;
  });
}

}  // namespace capibara::cuda::attention
