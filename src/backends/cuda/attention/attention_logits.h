// Operations on the logits of a tile in registers: scale, bias, masking, dropout.
//
// The rows of a tile are queries and its columns keys; if `turned` (transposed), rows are keys and columns queries, so
// that probabilities are the left operand of the matmuls that sum over queries.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backends/cuda/attention/attention_dropout.h"

namespace capibara::cuda::attention {

inline constexpr float infinity = __builtin_huge_valf();

inline __device__ float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// The positions of a thread's elements: element e of eight columns j is at row[e / 2] and column + 8 j + e % 2.
struct Place {
  int batch, head[2], row[2], column;
  uint2 dropout[2];
};

template <bool turned, int N, class F>
__device__ void each_element(float (&values)[N / 8][4], const Place& at, F&& change) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = at.row[e / 2], column = at.column + 8 * j + e % 2;
      values[j][e] = change(values[j][e], e / 2, turned ? column : row, turned ? row : column);
    }
  }
}

template <int N>
__device__ void scale_all(float (&values)[N][4], float factor) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) values[j][e] *= factor;
  }
}

template <class B, bool turned, int N>
__device__ void add_bias(const Problem& p, float (&logits)[N / 8][4], const Place& at) {
  const float scale = p.scale * log2e;
  each_element<turned, N>(logits, at, [&](float x, int half, int query, int key) {
    if (query >= p.queries || key >= p.keys) return x * scale;
    const int64_t from = at.batch * p.bias_step[0] + at.head[half] * p.bias_step[1] + query * p.bias_step[2];
    const B* bias = static_cast<const B*>(p.bias) + from;
    return x * scale + static_cast<float>(bias[key * p.bias_step[3]]) * log2e;
  });
}

// Converts products to base-2 logits.
template <class T, bool turned, int N>
__device__ void scale_logits(const Problem& p, float (&logits)[N / 8][4], const Place& at) {
  if (p.bias) return p.wide_bias ? add_bias<float, turned, N>(p, logits, at) : add_bias<T, turned, N>(p, logits, at);
  const float scale = p.scale * log2e;
  each_element<turned, N>(logits, at, [&](float x, int, int, int) { return x * scale; });
}

// Hides elements by position, segment and block pattern.
template <bool turned, int N, bool with_segments = true>
__device__ void hide_unseen(const Problem& p, float (&logits)[N / 8][4], const Place& at) {
  each_element<turned, N>(logits, at, [&](float x, int, int query, int key) {
    return query < p.queries && key < p.keys && (!p.by_position() || sees(p, query, key)) ? x : -infinity;
  });
  if (with_segments && p.query_segments) {
    const int *own = p.query_segments + at.batch * p.segment_step[0],
              *other = p.key_segments + at.batch * p.segment_step[1];
    each_element<turned, N>(logits, at, [&](float x, int, int query, int key) {
      return query < p.queries && key < p.keys && own[query] == other[key] ? x : -infinity;
    });
  }
  if (!p.blocks) return;
  const uint8_t* blocks = p.blocks + at.batch * p.block_step[0] + at.head[0] * p.block_step[1];
  each_element<turned, N>(logits, at, [&](float x, int, int query, int key) {
    if (query >= p.queries || key >= p.keys) return -infinity;
    return blocks[query / p.block_size * p.block_step[2] + key / p.block_size * p.block_step[3]] ? x : -infinity;
  });
}

template <bool turned, int N>
__device__ void hide_by_mask(const Problem& p, float (&logits)[N / 8][4], const Place& at) {
  each_element<turned, N>(logits, at, [&](float x, int half, int query, int key) {
    if (query >= p.queries || key >= p.keys) return -infinity;
    const int64_t from = at.batch * p.mask_step[0] + at.head[half] * p.mask_step[1] + query * p.mask_step[2];
    return p.mask[from + key * p.mask_step[3]] ? x : -infinity;
  });
}

// Applies all of the above. `whole`: no position, segment or pattern hides an element.
template <class T, bool turned, int N>
__device__ void make_logits(const Problem& p, float (&logits)[N / 8][4], const Place& at, bool whole) {
  scale_logits<T, turned, N>(p, logits, at);
  if (!whole) hide_unseen<turned, N>(p, logits, at);
  if (p.mask) hide_by_mask<turned, N>(p, logits, at);
}

}  // namespace capibara::cuda::attention
