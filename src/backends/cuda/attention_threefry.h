// The counter-based bits of dropout: threefry of a key of each head, of the query and of the key.
#pragma once

#include "backends/cuda/attention_problem.h"

namespace capibara::cuda::attention {

// Of several blocks, whose steps alternate: none of them waits for the one before it.
template <int A, int B, int C, int D, int N>
__device__ inline void rounds(uint32_t (&x)[N], uint32_t (&y)[N]) {
  constexpr int turns[4] = {A, B, C, D};
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] += y[i];
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = __funnelshift_l(y[i], y[i], turns[r]) ^ x[i];
  }
}
template <int N>
__device__ inline void inject(uint32_t (&x)[N], uint32_t (&y)[N], uint32_t to_x, uint32_t to_y) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] += to_x, y[i] += to_y;
}

// Threefry-2x32 with 20 rounds.
template <int N>
__device__ inline void threefry(uint2 key, uint32_t (&x)[N], uint32_t (&y)[N]) {
  const uint32_t third = key.x ^ key.y ^ 0x1bd11bdau;
  inject(x, y, key.x, key.y);
  rounds<13, 15, 26, 6>(x, y);
  inject(x, y, key.y, third + 1);
  rounds<17, 29, 16, 24>(x, y);
  inject(x, y, third, key.x + 2);
  rounds<13, 15, 26, 6>(x, y);
  inject(x, y, key.x, key.y + 3);
  rounds<17, 29, 16, 24>(x, y);
  inject(x, y, key.y, third + 4);
  rounds<13, 15, 26, 6>(x, y);
  inject(x, y, third, key.x + 5);
}
__device__ inline uint2 threefry(uint2 key, uint32_t x, uint32_t y) {
  uint32_t xs[1] = {x}, ys[1] = {y};
  threefry(key, xs, ys);
  return {xs[0], ys[0]};
}

__device__ inline uint2 dropout_key(const Problem& p, int batch, int head) {
  constexpr uint32_t stream = 0x61747464;  // kernels::dropout_stream
  if (p.threshold == 0) return {0, 0};
  const uint32_t* own = p.dropout_keys + batch / p.dropout_share * 2;
  return threefry({own[0], own[1]}, static_cast<uint32_t>(batch % p.dropout_share * p.heads + head), stream);
}

}  // namespace capibara::cuda::attention
