// Which of 64 neighbouring keys a query sees, as bits: what positions, segments and patterns say.
#pragma once

#include "backends/cuda/attention/attention_problem.h"

namespace capibara::cuda::attention {

inline __device__ uint64_t first_bits(int count) {
  return count <= 0 ? 0 : count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

inline __device__ uint64_t bits_by_position(const Problem& p, int query, int key) {
  const int at = query + p.offset - key;
  uint64_t bits = ~uint64_t{0};
  if (p.causal) bits &= first_bits(at + 1);
  if (p.right >= 0) bits &= first_bits(at + p.right + 1);
  if (p.left >= 0) bits &= ~first_bits(at - p.left) | first_bits(p.sinks - key);
  return bits | first_bits(p.prefix - key);
}

inline __device__ uint64_t bits_by_segment(const Problem& p, int batch, int query, int key, int count) {
  const int own = p.query_segments[batch * p.segment_step[0] + query];
  const int* others = p.key_segments + batch * p.segment_step[1] + key;
  uint64_t bits = 0;
#pragma unroll 8
  for (int i = 0; i < count; ++i) bits |= static_cast<uint64_t>(others[i] == own) << i;
  return bits;
}

inline __device__ uint64_t bits_by_pattern(const Problem& p, int batch, int head, int query, int key, int count) {
  const uint8_t* blocks =
      p.blocks + batch * p.block_step[0] + head * p.block_step[1] + query / p.block_size * p.block_step[2];
  uint64_t bits = 0;
  for (int column = key / p.block_size; column * p.block_size < key + count; ++column) {
    const int first = column * p.block_size - key;
    if (blocks[column * p.block_step[3]]) bits |= first_bits(first + p.block_size) & ~first_bits(first);
  }
  return bits;
}

// `level` is that of a rectangle in which they are: none of them, all, or some.
inline __device__ uint64_t seen_bits(const Problem& p, Level level, int batch, int head, int query, int key) {
  if (query >= p.queries || key >= p.keys || level == none) return 0;
  const int count = min(64, p.keys - key);
  uint64_t bits = first_bits(count);
  if (level == some) {
    bits &= bits_by_position(p, query, key);
    if (p.query_segments) bits &= bits_by_segment(p, batch, query, key, count);
    if (p.blocks) bits &= bits_by_pattern(p, batch, head, query, key, count);
  }
  return bits;
}

}  // namespace capibara::cuda::attention
