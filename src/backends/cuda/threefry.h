// Counter-based random bits: Threefry-2x32 with 20 rounds.
#pragma once

#include <cstdint>

namespace capibara::cuda {

// Interleaves the steps of several blocks, for instruction-level parallelism.
template <int A, int B, int C, int D, int N>
__device__ inline void threefry_rounds(uint32_t (&x)[N], uint32_t (&y)[N]) {
  constexpr int rotations[4] = {A, B, C, D};
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] += y[i];
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = __funnelshift_l(y[i], y[i], rotations[r]) ^ x[i];
  }
}
template <int N>
__device__ inline void threefry_inject(uint32_t (&x)[N], uint32_t (&y)[N], uint32_t to_x, uint32_t to_y) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] += to_x, y[i] += to_y;
}

// Each counter (x, y) becomes its two words.
template <int N>
__device__ inline void threefry(uint2 key, uint32_t (&x)[N], uint32_t (&y)[N]) {
  const uint32_t third = key.x ^ key.y ^ 0x1bd11bdau;
  threefry_inject(x, y, key.x, key.y);
  threefry_rounds<13, 15, 26, 6>(x, y);
  threefry_inject(x, y, key.y, third + 1);
  threefry_rounds<17, 29, 16, 24>(x, y);
  threefry_inject(x, y, third, key.x + 2);
  threefry_rounds<13, 15, 26, 6>(x, y);
  threefry_inject(x, y, key.x, key.y + 3);
  threefry_rounds<17, 29, 16, 24>(x, y);
  threefry_inject(x, y, key.y, third + 4);
  threefry_rounds<13, 15, 26, 6>(x, y);
  threefry_inject(x, y, third, key.x + 5);
}
__device__ inline uint2 threefry(uint2 key, uint32_t x, uint32_t y) {
  uint32_t xs[1] = {x}, ys[1] = {y};
  threefry(key, xs, ys);
  return {xs[0], ys[0]};
}

}  // namespace capibara::cuda
