// The bias of the tiles of warpgroups, which comes through shared memory where its rows are pieces of 16 bytes, and
// what makes logits of products.
#pragma once

#include "backends/cuda/attention_bias_grid.h"
#include "backends/cuda/attention_bits.h"

namespace capibara::cuda::attention {

template <class T>
__device__ float2 unpacked_pair(uint32_t word) {
  T pair[2];
  *reinterpret_cast<uint32_t*>(pair) = word;
  return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

// A tile of 64 queries by 64 keys in shared memory, rows are queries.
template <class T>
struct BiasTile {
  using Layout = TileOf<T, 64, 64>;

  // The copier's part. What does not exist is 0.
  static __device__ void copy(const Problem& p, uint32_t to, int batch, int head, int query, int key) {
    const T* bias = static_cast<const T*>(p.bias) + batch * p.bias_step[0] + head * p.bias_step[1] + key;
    const int piece = threadIdx.x % 8;
#pragma unroll
    for (int row = threadIdx.x / 8; row < 64; row += 16) {
      const bool exists = query + row < p.queries && key + piece * 8 < p.keys;
      copy_piece(to + Layout::at(row, piece), exists ? bias + (query + row) * p.bias_step[2] + piece * 8 : bias,
                 exists);
    }
  }

  // Adds the part of the thread's warp to products, from eight columns `first` on, which are scaled to logits to the
  // base 2.
  template <bool turned, int N>
  static __device__ void add(float (&logits)[N][4], uint32_t from, float scale, int first = 0) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      uint32_t words[4];
      if constexpr (turned)
        load_transposed(words, from + Layout::at(16 * n + lane % 8 + lane / 16 * 8, 2 * warp + lane / 8 % 2));
      else
        load_matrices(words, from + Layout::at(16 * warp + lane % 16, 2 * n + lane / 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = unpacked_pair<T>(words[i]);
        float(&to)[4] = logits[first + 2 * n + i / 2];
        to[i % 2 * 2] = to[i % 2 * 2] * scale + pair.x * log2e;
        to[i % 2 * 2 + 1] = to[i % 2 * 2 + 1] * scale + pair.y * log2e;
      }
    }
  }
};

// Any other bias, read where it is.
template <class T, bool turned>
__device__ void add_any_bias(const Problem& p, float (&logits)[8][4], const Place& at) {
  const float scale = p.scale * log2e;
  const int64_t first = at.batch * p.bias_step[0] + at.head[0] * p.bias_step[1];
  each_element<turned, 64>(logits, at, [&](float x, int, int query, int key) {
    const int64_t from = first + min(query, p.queries - 1) * p.bias_step[2] + min(key, p.keys - 1) * p.bias_step[3];
    const float bias =
        p.wide_bias ? static_cast<const float*>(p.bias)[from] : static_cast<float>(static_cast<const T*>(p.bias)[from]);
    return x * scale + bias * log2e;
  });
}

// Products that nothing is added to are scaled in the exponent.
template <bool biased>
__device__ float factor_of(const Problem& p) {
  return biased || !(p.scale > 0) ? 1.0f : p.scale * log2e;
}

// Products become logits, which times `factor_of` are to the base 2; `extra` is where the bias of the stage is.
template <class T, bool turned, bool biased>
__device__ void make_group_logits(const Problem& p, float (&logits)[8][4], const Place& at, uint32_t extra, int worker,
                                  bool whole, uint32_t seen) {
  const float scale = p.scale * log2e;
  if constexpr (biased) {
    if (has_bias_pieces(p))
      BiasTile<T>::template add<turned>(logits, extra + worker * bias_tile_bytes, scale);
    else
      add_any_bias<T, turned>(p, logits, at);
  } else if (!(p.scale > 0)) {
    scale_all(logits, scale);
  }
  if (!whole) hide<turned>(logits, seen);
}

}  // namespace capibara::cuda::attention
