// The slopes of a bias that all entries of a batch share: sums of those of their logits, which are stored.
#pragma once

#include "backends/cuda/attention/hopper/attention_bias_tiles.h"

namespace capibara::cuda::attention {

// A block of threads has a tile of 64 queries by 64 keys.
template <class T>
__global__ void __launch_bounds__(group_threads) bias_sums_kernel(const __grid_constant__ Problem p) {
  const int key = static_cast<int>(blockIdx.x) * 64, query = static_cast<int>(blockIdx.y) * 64;
  const int head = p.first_group * p.per_group() + static_cast<int>(blockIdx.z);
  const int row = query + static_cast<int>(threadIdx.x) / 8, column = key + static_cast<int>(threadIdx.x) % 8 * 8;
  float sums[4][8] = {};
  for (int batch = 0; batch < p.batch; ++batch) {
    if (seen_in(p, {query, query + 64, key, key + 64}, batch, head) == none) continue;
    // The first entry's are where the sums will be: this thread reads them before it writes there.
    const T* slopes = static_cast<const T*>(batch == 0 ? p.dbias : p.slopes);
    const int64_t first = static_cast<int64_t>(batch == 0 ? head : slope_number(p, batch, head)) * p.queries;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (row + 16 * i >= p.queries || column >= p.keys) continue;
      const T* from = slopes + (first + row + 16 * i) * p.keys + column;
      const uint4 piece = __ldcs(reinterpret_cast<const uint4*>(from));
      const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 pair = unpacked_pair<T>(words[k]);
        sums[i][2 * k] += pair.x, sums[i][2 * k + 1] += pair.y;
      }
    }
  }
  const BiasSlopes<T> to(p, 0, head);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t words[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) words[k] = packed_pair(sums[i][2 * k], sums[i][2 * k + 1], T());
    to.store_piece(p, row + 16 * i, column, uint4{words[0], words[1], words[2], words[3]});
  }
}

}  // namespace capibara::cuda::attention
