// A call of attention on a GPU: its operands, sizes and options, and the keys visible to a query.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace capibara::cuda::attention {

inline constexpr float log2e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

// The operands of src/kernels/attention/spec.h. Null: not used by the call.
struct Problem {
  const void *query, *key, *value, *cotangent;  // [batch, heads or groups, length, size or value_size]
  const float *lse, *delta;                     // [batch, heads, queries]
  const uint8_t* mask;
  uint64_t* mask_bits;  // of the mask, computed by a kernel before all others
  const void* bias;
  const int *query_segments, *key_segments;
  const uint32_t* dropout_keys;
  const uint8_t* blocks;
  void* out;
  float* out_lse;
  float *part_out, *part_lse;  // per part of the keys, if they are split
  void *dquery, *dkey, *dvalue, *dbias;
  // Gradients of the logits of a part of the heads, [batch, heads, queries, keys], if a bias needs them stored; for a
  // bias shared by the entries of a batch, without those of the first entry, which are in dbias.
  void* gradients;
  int batch, heads, groups, queries, keys, size, value_size;
  int64_t mask_step[4], bias_step[4], block_step[4];  // in elements, 0 along broadcast dimensions
  int64_t mask_row[3], mask_rows;                     // the same for its rows of keys, in rows, and the number of rows
  int64_t segment_step[2];                            // from one batch entry to the next
  int dropout_share;                                  // batch entries per dropout key
  float scale, keep_scale;
  // With a bias: logits = products * product_factor + bias * bias_factor; times exponent_factor they are base-2
  // exponents, and a log-sum-exp times bias_factor is in their units. `folded`: product_factor is 1.
  float product_factor, bias_factor, exponent_factor;
  uint32_t threshold;             // elements whose 16 bits are at least this are kept
  uint32_t threshold_digits[16];  // its binary digits, lowest first: 0 for 1, all ones for 0
  int left, right, sinks, prefix, offset, block_size;
  int splits;                              // parts of the keys
  int first_group, part_groups;            // key groups of this part, or all of them
  bool causal, packed, wide_bias, folded;  // packed: the queries of all heads of a group are rows of one tile

  __host__ __device__ int per_group() const { return heads / groups; }
  __device__ bool by_position() const { return causal || left >= 0 || right >= 0; }
};

__device__ inline bool sees(const Problem& p, int query, int key) {
  const int at = query + p.offset;
  if (key < p.prefix) return true;
  if (p.causal && key > at) return false;
  if (p.right >= 0 && key > at + p.right) return false;
  return p.left < 0 || key >= at - p.left || key < p.sinks;
}

// Queries [query, last_query) by keys [key, last_key).
struct Rectangle {
  int query, last_query, key, last_key;
};

enum Level { none, all, some };  // of the elements of a rectangle are visible

__device__ inline Level both(Level a, Level b) { return a == none || b == none ? none : a == some ? some : b; }

__device__ inline Level seen_by_position(const Problem& p, const Rectangle& r) {
  const int first = r.query + p.offset, last = r.last_query - 1 + p.offset;
  if (r.last_key <= p.prefix) return all;
  bool any = true, every = true;
  if (p.causal) any &= r.key <= last, every &= r.last_key - 1 <= first;
  if (p.right >= 0) any &= r.key <= last + p.right, every &= r.last_key - 1 <= first + p.right;
  if (p.left >= 0) {
    any &= r.last_key - 1 >= first - p.left || r.key < p.sinks;
    every &= r.key >= last - p.left || r.last_key <= p.sinks;
  }
  return every ? all : any || r.key < p.prefix ? some : none;
}

// A kernel's kind of bias: none, any, or one that is `folded`, without dropout.
enum class Bias { none, any, bare };
inline bool is_bare(const Problem& p) { return p.folded && p.threshold == 0; }

struct Range {
  int low, high;
};

__device__ inline Range range_of(const int* ids, int first, int last) {
  Range range{ids[first], ids[first]};
  for (int i = first + 1; i < last; ++i) range = {min(range.low, ids[i]), max(range.high, ids[i])};
  return range;
}

__device__ inline Level seen_by_segment(const Problem& p, const Rectangle& r, int batch) {
  const Range own = range_of(p.query_segments + batch * p.segment_step[0], r.query, r.last_query);
  const Range other = range_of(p.key_segments + batch * p.segment_step[1], r.key, r.last_key);
  if (own.low > other.high || other.low > own.high) return none;
  return own.low == own.high && other.low == other.high ? all : some;
}

__device__ inline Level kept_by_pattern(const Problem& p, const Rectangle& r, int batch, int head) {
  const uint8_t* blocks = p.blocks + batch * p.block_step[0] + head * p.block_step[1];
  bool any = false, every = true;
  for (int row = r.query / p.block_size; row * p.block_size < r.last_query; ++row) {
    for (int column = r.key / p.block_size; column * p.block_size < r.last_key; ++column) {
      const bool kept = blocks[row * p.block_step[2] + column * p.block_step[3]];
      any |= kept, every &= kept;
    }
  }
  return every ? all : any ? some : none;
}

// The visibility by position, segment and block pattern; masks are read element by element.
__device__ inline Level seen_in(const Problem& p, Rectangle r, int batch, int head) {
  if (r.query >= p.queries || r.key >= p.keys) return none;
  Level level = r.last_query <= p.queries && r.last_key <= p.keys ? all : some;
  r.last_query = min(r.last_query, p.queries);
  r.last_key = min(r.last_key, p.keys);
  if (p.by_position()) level = both(level, seen_by_position(p, r));
  if (p.blocks && level != none) level = both(level, kept_by_pattern(p, r, batch, head));
  if (p.query_segments && level != none) level = both(level, seen_by_segment(p, r, batch));
  return level;
}

}  // namespace capibara::cuda::attention
