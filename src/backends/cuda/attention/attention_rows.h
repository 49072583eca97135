// Rows of attention's tiles: their queries, the softmax along them, and storing them.
#pragma once

#include "backends/cuda/attention/attention_logits.h"
#include "backends/cuda/attention/attention_tiles.h"
#include "backends/cuda/tiles.h"

namespace capibara::cuda::attention {

// The maximum and the sum of a row, which is spread over four neighbouring threads.
inline __device__ float row_maximum(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
inline __device__ float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Running maxima and sums of a thread's two rows.
struct Softmax {
  float maximum[2] = {-infinity, -infinity}, sum[2] = {0, 0};

  // Converts logits, which times `factor` are base-2 exponents, to shares; `decay` is the factor of the sums so far.
  template <int N>
  __device__ void take(float (&logits)[N / 8][4], float (&decay)[2], float factor = 1.0f) {
    // Several maxima and totals per row, so that dependent chains are short.
    constexpr int ways = 4;
    float greatest[2][ways], total[2][ways], base[2];
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& own = greatest[e / 2][j % (ways / 2) * 2 + e % 2];
        own = j < ways / 2 ? logits[j][e] : fmaxf(own, logits[j][e]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float(&of)[ways] = greatest[half];
      const float both = row_maximum(fmaxf(fmaxf(maximum[half], fmaxf(of[0], of[1])), fmaxf(of[2], of[3])));
      base[half] = both == -infinity ? 0.0f : both * factor;
      decay[half] = maximum[half] == both ? 1.0f : power_of_two((maximum[half] - both) * factor);
      maximum[half] = both;
    }
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float share = logits[j][e] = power_of_two(logits[j][e] * factor - base[e / 2]);
        float& own = total[e / 2][j % (ways / 2) * 2 + e % 2];
        own = j < ways / 2 ? share : own + share;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float(&of)[ways] = total[half];
      sum[half] = sum[half] * decay[half] + ((of[0] + of[1]) + (of[2] + of[3]));
    }
  }
};

// The tile of a thread block, and the index of its head among those of all batch entries. Entries that share a
// bias are consecutive, so that it stays in the cache.
struct TileOfHead {
  int tile, head;
};
inline __device__ TileOfHead tile_of(const Problem& p, int block, int tiles, int heads) {
  if (!p.bias || p.bias_step[0]) return {block % tiles, block / tiles};
  const int rest = block / p.batch;
  return {rest % tiles, block % p.batch * heads + rest / tiles};
}

// The rows of a block: queries of one head, or of all heads of a group if packed.
template <int Rows = block_rows>
struct RowBlock {
  int batch, head, group, first, rows;  // of `rows` rows, those starting at `first`
  int64_t begin;                        // index of row 0 in [batch, heads, queries]

  static __device__ bool is_packed(const Problem& p) { return Rows == block_rows && p.packed; }

  __device__ RowBlock(const Problem& p, int block) {
    const int heads = is_packed(p) ? p.groups : p.heads;
    rows = is_packed(p) ? p.per_group() * p.queries : p.queries;
    const int tiles = (rows + Rows - 1) / Rows;
    const auto [tile, which] = tile_of(p, block, tiles, heads);
    first = (tiles - 1 - tile) * Rows;  // tiles that see the most keys start first
    batch = which / heads;
    head = is_packed(p) ? which % heads * p.per_group() : which % heads;
    group = head / p.per_group();
    begin = (static_cast<int64_t>(batch) * p.heads + head) * p.queries;
  }
  // Tile `tile` of a head.
  __device__ RowBlock(const Problem& p, int tile, int entry, int of_head)
      : batch(entry), head(of_head), group(of_head / p.per_group()), rows(p.queries) {
    first = ((rows + Rows - 1) / Rows - 1 - tile) * Rows;
    begin = (static_cast<int64_t>(batch) * p.heads + head) * p.queries;
  }
  __device__ Rectangle with_keys(const Problem& p, int key, int last_key) const {
    return {is_packed(p) ? 0 : first, is_packed(p) ? p.queries : first + Rows, key, last_key};
  }
  // The position of this thread, in a warpgroup whose first row is row `above` of the block.
  __device__ Place place(const Problem& p, int above = 0) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    Place at{batch, {head, head}, {}, 2 * (lane % 4), {}};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + above + 16 * warp + lane / 4 + 8 * half;
      at.row[half] = is_packed(p) ? row % p.queries : row;
      if (is_packed(p)) at.head[half] = min(head + row / p.queries, p.heads - 1);
      at.dropout[half] = dropout_key(p, batch, at.head[half]);
    }
    return at;
  }
};

using cuda::store_pair;
inline __device__ void store_pair(__half* to, float x, float y) {
  *reinterpret_cast<__half2*>(to) = __floats2half2_rn(x, y);
}

// Stores two neighbouring elements, of which `left` exist; `paired`: every row starts at an even index.
template <class T>
__device__ void store_two(T* to, float x, float y, int left, bool paired) {
  if (paired && left > 1) return store_pair(to, x, y);
  if (left > 0) to[0] = static_cast<T>(x);
  if (left > 1) to[1] = static_cast<T>(y);
}

// Stores two elements of every eight columns of a row, of which `width` exist.
template <class T, int D>
__device__ void store_row(T* to, const float (&sums)[D / 8][4], int half, int width, float factor) {
  const int column = 2 * (threadIdx.x % 4);
#pragma unroll
  for (int j = 0; j < D / 8; ++j) {
    const float x = sums[j][2 * half] * factor, y = sums[j][2 * half + 1] * factor;
    store_two(to + 8 * j + column, x, y, width - 8 * j - column, width % 2 == 0);
  }
}

}  // namespace capibara::cuda::attention
