// Fused attention: dense (flash_attention) and over blocks of keys that a pattern keeps (sparse_attention).
//
// Arrays are [batch, heads, length, head_dim]. Keys and values may have fewer heads: each serves heads / key_heads
// consecutive query heads. Memory is linear in the lengths, in the forward and the backward pass.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::kernels {

struct FlashAttentionOptions {
  std::optional<Array> attention_mask = {};  // bool, broadcasts to [batch, heads, queries, keys]; true: the key is seen
  double dropout_rate = 0;                   // in [0, 1), in steps of 1 / 65536
  bool causal = false;                       // query i attends to keys up to i + query_offset
  // Ring attention if query, key and value are split along their sequences over one mesh axis: each device computes
  // its queries, keys and values rotate, the result is sharded like the query. The sharding is read from the arrays;
  // arrays that are not split are computed without it. Inside a traced function the sharding is not visible: there
  // the axis is that of the enclosing shard_map, or sequence_axis, "sequence" or the only axis of the mesh of
  // jax::set_mesh; without such a mesh it raises an error if there are several devices.
  bool sequence_parallel = false;
  std::string sequence_axis = {};                          // of the mesh; empty: found as described above
  std::optional<Array> bias = {};                          // added to the scaled logits; broadcasts like the mask
  std::optional<double> scale = {};                        // 1 / sqrt(head_dim) by default
  std::optional<std::pair<int64_t, int64_t>> window = {};  // visible keys before and after the query's own position
  int64_t sinks = 0;                                       // number of first keys, which a window does not hide
  std::optional<Array> segment_ids = {};      // int32 [batch, queries]; keys of other segments are not visible
  std::optional<Array> key_segment_ids = {};  // int32 [batch, keys]; segment_ids by default
  int64_t query_offset = 0;                   // position of the first query among the keys, for decoding
  std::optional<Array> dropout_key = {};      // required if dropout_rate is not 0
};
// softmax(scale query key^T + bias) value by blocks, with masks, windows, segments and dropout. The result of a query
// that sees no key is 0, and so are its derivatives.
Array flash_attention(const Array& query, const Array& key, const Array& value,
                      const FlashAttentionOptions& options = {});

struct SparseAttentionOptions {
  // "causal", "sliding_window", "bigbird" (or "block_sparse"), "longformer", "prefix" or "document".
  std::string sparsity_pattern = "block_sparse";
  // In place of a name: bool [..., query blocks, key blocks], or int lists [..., query blocks, count] of key blocks,
  // padded with -1; leading axes broadcast to [batch, heads].
  std::optional<Array> blocks = {};
  int64_t block_size = 64;
  bool causal = false;  // in addition to the pattern: query i attends to keys up to i
  // Each belongs to the patterns named and raises an error with others.
  std::optional<int64_t> window = {};         // sliding_window: tokens to each side, 4 blocks by default; bigbird,
                                              // longformer: blocks to each side, 1 by default
  std::optional<int64_t> sinks = {};          // sliding_window: number of first tokens, which the window does not hide
  std::optional<int64_t> global_blocks = {};  // bigbird, longformer: first blocks, which see all and are seen by all; 1
  std::optional<int64_t> random_blocks = {};  // bigbird: per block of queries; 3 by default
  std::optional<int64_t> seed = {};           // bigbird: of the random blocks; 0 by default
  std::optional<int64_t> prefix = {};         // prefix: first tokens, visible to all; the others are causal
  std::optional<double> scale = {};
  std::optional<Array> segment_ids = {};      // document: int32 [batch, queries]
  std::optional<Array> key_segment_ids = {};  // int32 [batch, keys]; segment_ids by default
};
// Attention over the blocks of keys that a pattern keeps for each block of queries; time is proportional to their
// number.
Array sparse_attention(const Array& query, const Array& key, const Array& value,
                       const SparseAttentionOptions& options = {});
// The blocks that a pattern keeps for these lengths: bool [batch or 1, heads or 1, query blocks, key blocks].
Array sparsity_blocks(int64_t queries, int64_t keys, const SparseAttentionOptions& options = {});

}  // namespace capibara::kernels
