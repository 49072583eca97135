// jax.nn: scaled dot-product attention with grouped heads, masks and windows.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::jax::nn {

struct AttentionOptions {
  std::optional<Array> bias = {};   // added to the logits; broadcasts to [batch, heads, queries, keys]
  std::optional<Array> mask = {};   // bool of the same shape: false hides a key
  std::optional<Array> scale = {};  // by default 1 / sqrt(head size)
  bool is_causal = false;
  std::optional<Array> query_seq_lengths = {}, key_value_seq_lengths = {};  // int32 [batch]
  std::optional<std::pair<int64_t, int64_t>> local_window_size = {};        // visible keys to the left and to the right
  std::string implementation = {};                                          // "" or "xla"
};
// softmax(scale query key^T + bias) value, with grouped heads, masks, lengths and windows.
// query [batch, queries, heads, size], key and value [batch, keys, groups, size]; heads are a multiple of groups. The
// batch may be omitted. Softmax runs in float32.
Array dot_product_attention(const Array& query, const Array& key, const Array& value,
                            const AttentionOptions& options = {});
// dot_product_attention and the logarithm of the softmax denominators, [batch, queries, heads]: return_residual=True.
std::pair<Array, Array> dot_product_attention_with_residual(const Array& query, const Array& key, const Array& value,
                                                            const AttentionOptions& options = {});

}  // namespace capibara::jax::nn
