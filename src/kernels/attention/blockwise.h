// Attention split into blocks of queries and keys: the pieces that its compositions share.
#pragma once

#include <capibara/control.h>

#include "kernels/attention/spec.h"

namespace capibara::kernels {

// A block of queries or keys. If the axis is not a multiple of the block size, the last block starts earlier and
// overlaps the previous one.
struct AttentionBlock {
  Array start, first_own;  // int32 scalars; positions before first_own belong to the previous block
};

// Arrays with heads have shape [batch, groups, heads per group, length, size].
class BlockwiseAttention {
 public:
  // `extras`: the optional operands, which follow the required ones.
  BlockwiseAttention(const AttentionSpec& spec, const AttentionSizes& sizes, std::span<const Array> extras,
                     DType sum_dtype);

  int64_t query_blocks() const { return (sizes_.queries + query_size_ - 1) / query_size_; }
  int64_t key_blocks() const { return (sizes_.keys + key_size_ - 1) / key_size_; }
  AttentionBlock query_block(const Array& number) const { return block(number, query_size_, sizes_.queries); }
  AttentionBlock key_block(const Array& number) const { return block(number, key_size_, sizes_.keys); }
  Array queries_of(const Array& x, const AttentionBlock& block, int64_t axis) const;
  Array keys_of(const Array& x, const AttentionBlock& block, int64_t axis) const;

  // True for the keys visible to each query, broadcasting to [batch, groups, heads per group, queries, keys]; empty:
  // all. With `own_rows`, queries that belong to the previous block see none.
  Array seen(const AttentionBlock& query, const AttentionBlock& key, bool own_rows) const;
  // scale query key^T + bias, minus infinity where `seen` is false.
  Array logits(const Array& query, const Array& key, const AttentionBlock& query_at, const AttentionBlock& key_at,
               const Array& seen) const;
  // True for the elements that dropout keeps.
  Array kept(const AttentionBlock& query, const AttentionBlock& key) const;
  // Reduces an array [batch, groups, heads per group, queries, keys] to the shape of its block of the bias, and adds it
  // to dbias.
  Array add_to_bias(const Array& dbias, const Array& gradients, const AttentionBlock& query,
                    const AttentionBlock& key) const;

  Array grouped(const Array& x) const;    // [batch, heads, ...] -> [batch, groups, heads per group, ...]
  Array ungrouped(const Array& x) const;  // the inverse

 private:
  AttentionBlock block(const Array& number, int64_t size, int64_t extent) const;
  Array pair_of(const Array& x, const AttentionBlock& query, const AttentionBlock& key) const;
  Array position_seen(const Array& query, const Array& key) const;
  Array block_seen(const Array& query, const Array& key) const;

  const AttentionSpec& spec_;
  AttentionSizes sizes_;
  std::span<const Array> extras_;
  DType sum_dtype_;
  int64_t query_size_, key_size_;
  Array head_keys_;  // for dropout: uint32 [batch, heads, 2]
};

}  // namespace capibara::kernels
