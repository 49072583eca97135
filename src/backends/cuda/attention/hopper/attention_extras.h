// The bias of the tiles of warpgroups, which comes through shared memory where its rows are pieces of 16 bytes, and
// what makes logits of products.
#pragma once

#include "backends/cuda/attention/attention_bias_grid.h"
#include "backends/cuda/attention/hopper/attention_bits.h"

namespace capibara::cuda::attention {

template <class T>
__device__ float2 unpacked_pair(uint32_t word) {
  if constexpr (is_brain<T>) return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
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

  // What a thread reads of a tile: 16 columns of its warp's rows; where they are turned, its warp's columns of 16 rows.
  template <bool turned>
  static __device__ uint32_t first_at() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    return turned ? Layout::at(lane % 8 + lane / 16 * 8, 2 * warp + lane / 8 % 2)
                  : Layout::at(16 * warp + lane % 16, lane / 16);
  }
  template <bool turned>
  static __device__ uint32_t at(uint32_t first, int n) {
    return turned ? first + n * 2048 : first ^ n * 32;
  }
  // Of the thread's elements, where the first it reads is at `first`: change(bias, j, e).
  template <bool turned, class Change>
  static __device__ void load(float (&to)[8][4], uint32_t first, Change&& change) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      uint32_t words[4];
      if constexpr (turned)
        load_transposed(words, at<turned>(first, n));
      else
        load_matrices(words, at<turned>(first, n));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = unpacked_pair<T>(words[i]);
        const int j = 2 * n + i / 2, e = i % 2 * 2;
        to[j][e] = change(pair.x, j, e);
        to[j][e + 1] = change(pair.y, j, e + 1);
      }
    }
  }
};

// Where a thread of a worker reads its bias in a stage, from the first byte of the stage on: computed once.
template <class T, int D, bool turned>
__device__ uint32_t bias_offset(int worker) {
  uint32_t offset = 2 * GroupTile<T, D>::bytes + worker * bias_tile_bytes + BiasTile<T>::template first_at<turned>();
  asm volatile("" : "+r"(offset));
  return offset;
}

// The copier's part for both workers, whose tiles are one beside the other.
template <class T, bool turned>
__device__ void copy_bias(const Problem& p, const BoxSources& sources, uint32_t to, int batch, int head, int query,
                          int key, uint32_t barrier) {
  if (!has_bias_pieces(p)) return;
  const bool boxes = has_bias_boxes(p);
  if (boxes && threadIdx.x != 0) return;
  if (boxes) expect_bytes(barrier, bias_bytes);
#pragma unroll
  for (int w = 0; w < workers; ++w, to += bias_tile_bytes, turned ? key += 64 : query += 64) {
    if (boxes)
      start_box(to, sources.bias, key, query, bias_number(p, batch, head), barrier);
    else
      BiasTile<T>::copy(p, to, batch, head, query, key);
  }
}
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
  if constexpr (biased) return p.exponent_factor;
  return p.scale > 0 ? p.scale * log2e : 1.0f;
}

// Products become logits, which times `factor_of` are to the base 2; `first` is where the thread reads its bias, if
// that comes in pieces. A bare bias was added before.
template <class T, bool turned, Bias kind>
__device__ void make_group_logits(const Problem& p, float (&logits)[8][4], const Place& at, uint32_t first, bool whole,
                                  uint32_t seen) {
  if constexpr (kind == Bias::any) {
    if (has_bias_pieces(p))
      BiasTile<T>::template load<turned>(logits, first, [&](float bias, int j, int e) {
        return logits[j][e] * p.product_factor + bias * p.bias_factor;
      });
    else
      add_any_bias<T, turned>(p, logits, at);
  } else if (kind == Bias::none && !(p.scale > 0)) {
    scale_all(logits, p.scale * log2e);
  }
  if (!whole) hide<turned>(logits, seen);
}

}  // namespace capibara::cuda::attention
