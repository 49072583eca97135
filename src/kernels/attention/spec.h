// The attributes of a fused attention equation: its options, the positions of its operands, its sizes.
#pragma once

#include <capibara/primitive.h>

namespace capibara::kernels {

// Attributes of flash_attention and sparse_attention and of their gradients. Optional operands follow the
// required ones, in the order of the indices below.
struct AttentionSpec {
  bool causal, has_mask, has_bias, has_segments, has_blocks;
  double scale, dropout_rate;
  int64_t left, right;    // keys visible before and after a query's position; -1: all
  int64_t sinks, prefix;  // leading keys visible despite a window, or despite window and order
  int64_t query_offset, block_size;
  int mask = -1, bias = -1, query_segments = -1, key_segments = -1, dropout_key = -1, blocks = -1;
  int extras = 0;

  explicit AttentionSpec(const Attrs& attrs);

  // Dropout keeps an element if its 16 bits are at least this; kept elements are multiplied by keep_scale.
  uint32_t dropout_threshold() const;
  double keep_scale() const { return 65536.0 / (65536.0 - dropout_threshold()); }
  bool by_position() const { return causal || left >= 0 || right >= 0; }
};

// [batch, heads, queries, size] by [batch, groups, keys, size] and [batch, groups, keys, value_size].
struct AttentionSizes {
  int64_t batch, heads, groups, queries, keys, size, value_size;

  AttentionSizes(const Shape& query, const Shape& key, const Shape& value)
      : batch(query[0]),
        heads(query[1]),
        groups(key[1]),
        queries(query[2]),
        keys(key[2]),
        size(query[3]),
        value_size(value[3]) {}
  int64_t per_group() const { return heads / groups; }
};

inline constexpr std::size_t forward_operands = 3;   // query, key, value
inline constexpr std::size_t backward_operands = 6;  // cotangent, query, key, value, log-sum-exp, row sums
// The second word of the counter from which the heads' dropout keys are derived.
inline constexpr uint32_t dropout_stream = 0x61747464;

inline DType attention_sum_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// The compositions. Forward: (query, key, value, ...) -> (output, log-sum-exp); backward: (cotangent, query, key,
// value, log-sum-exp, row sums of cotangent * output, ...) -> (dquery, dkey, dvalue), and dbias if there is a bias.
Arrays compose_attention(std::span<const Array> in, const Attrs& attrs);
Arrays compose_attention_grad(std::span<const Array> in, const Attrs& attrs);

// The records of `name` and of name_grad.
std::vector<PrimitiveRecord> attention_records(const std::string& name, const std::string& doc, bool sparse);

// The arguments that the functions pass to the primitives.
struct AttentionOperands {
  std::string name;
  Array query, key, value;
  std::optional<Array> mask, bias, query_segments, key_segments, dropout_key, blocks;
};
// The operands of the primitive, checked and completed; adds the has_... attributes to `attrs`.
Arrays attention_inputs(const AttentionOperands& operands, Attrs& attrs);
// The output of the primitive.
Array bind_attention(const Primitive& primitive, const AttentionOperands& operands, Attrs attrs);

}  // namespace capibara::kernels
