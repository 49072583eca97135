// Fused attention: dense (flash_attention) and over blocks of keys that a pattern keeps (sparse_attention).
//
// Arrays are [batch, heads, length, head_dim]. Keys and values may have fewer heads: each serves heads / key_heads
// neighbouring heads of the queries. Memory is proportional to the lengths, forwards and backwards.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::kernels {

struct FlashAttentionOptions {
  std::optional<Array> attention_mask = {};  // bool, broadcasts to [batch, heads, queries, keys]; true: the key is seen
  double dropout_rate = 0;                   // in [0, 1), in steps of 1 / 65536
  bool causal = false;                       // query i sees keys up to i + query_offset
  // Ring attention where query, key and value are split along their sequences over one mesh axis: each device computes
  // its queries, keys and values pass around, the result is split as the query. Arrays say themselves how they are
  // split, and those that are not are computed as without it. A traced function does not see it: there the axis is that
  // of the shard_map around it, or sequence_axis, "sequence" or the only axis of the mesh of jax::set_mesh; without
  // such a mesh it is refused where there are several devices.
  bool sequence_parallel = false;
  std::string sequence_axis = {};                          // of the mesh; where it is empty it is found as said above
  std::optional<Array> bias = {};                          // is added to the scaled logits; broadcasts like the mask
  std::optional<double> scale = {};                        // 1 / sqrt(head_dim) by default
  std::optional<std::pair<int64_t, int64_t>> window = {};  // keys seen before and after the query's own position
  int64_t sinks = 0;                                       // first keys, which a window does not hide
  std::optional<Array> segment_ids = {};      // int32 [batch, queries]; keys of other segments are not seen
  std::optional<Array> key_segment_ids = {};  // int32 [batch, keys]; segment_ids by default
  int64_t query_offset = 0;                   // position of the first query among the keys, for decoding
  std::optional<Array> dropout_key = {};      // needed where dropout_rate is not 0
};
// softmax(scale query key^T + bias) value by blocks, with masks, windows, segments and dropout. The result of a query
// that sees no key is 0, and so are its derivatives.
Array flash_attention(const Array& query, const Array& key, const Array& value,
                      const FlashAttentionOptions& options = {});

struct SparseAttentionOptions {
  // "causal", "sliding_window", "bigbird" (or "block_sparse"), "longformer", "prefix" or "document".
  std::string sparsity_pattern = "block_sparse";
  // In place of a name: bool [..., query blocks, key blocks], or int lists [..., query blocks, count] of key blocks, -1
  // for none; leading axes broadcast to [batch, heads].
  std::optional<Array> blocks = {};
  int64_t block_size = 64;
  bool causal = false;  // besides the pattern: query i sees keys up to i
  // Each belongs to the patterns named and is refused with others.
  std::optional<int64_t> window = {};         // sliding_window: tokens to each side, 4 blocks by default; bigbird,
                                              // longformer: blocks to each side, 1 by default
  std::optional<int64_t> sinks = {};          // sliding_window: first tokens, which the window does not hide
  std::optional<int64_t> global_blocks = {};  // bigbird, longformer: first blocks, which see all and all see; 1
  std::optional<int64_t> random_blocks = {};  // bigbird: for each block of queries; 3 by default
  std::optional<int64_t> seed = {};           // bigbird: of the random blocks; 0 by default
  std::optional<int64_t> prefix = {};         // prefix: first tokens, which all see; the others are causal
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
