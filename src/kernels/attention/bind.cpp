// The function side of fused attention: checks and completes operands, then binds the primitive.
#include <capibara/lax.h>

#include "kernels/attention/spec.h"
#include "lax/rules.h"
#include "program/ir/handles.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

// Expands [queries, keys], [heads, queries, keys] ... to four dimensions.
Array with_four_axes(const std::string& name, const char* argument, const Array& x) {
  if (x.ndim() > 4) {
    throw TypeError(concat(name, ": expected at most 4 dimensions, [batch, heads, queries, keys] (argument '", argument,
                           "'), got ", to_string(x.type())));
  }
  return x.ndim() == 4 ? x : lax::broadcast_to_rank(x, 4);
}

// The words of a key or of raw key data, shape [1, 2].
Array key_words(const std::string& name, const Array& key) {
  Array words = key;
  if (key.dtype() == DType::key_fry) words = bind1(prim::random_unwrap(), {key});
  if (words.dtype() != DType::uint32 || words.shape() != Shape{2}) {
    throw TypeError(concat(name, ": expected one threefry2x32 key (argument 'dropout_key'), got ",
                           to_string(key.type()), "; jax.random.key(seed, impl='threefry2x32') makes one"));
  }
  return lax::reshape(words, {1, 2});
}

}  // namespace

Arrays attention_inputs(const AttentionOperands& operands, Attrs& attrs) {
  const std::string& name = operands.name;
  const Array& query = operands.query;
  Arrays inputs = {query, operands.key, operands.value};
  if (operands.mask) {
    const Array& mask = *operands.mask;
    if (mask.dtype() != DType::bool_) {
      throw TypeError(concat(name, ": expected bool, true where a key is seen (argument 'attention_mask'), got ",
                             to_string(mask.type()), "; what is added to logits is the argument 'bias'"));
    }
    inputs.push_back(with_four_axes(name, "attention_mask", mask));
  }
  if (operands.bias) {
    Array bias = *operands.bias;
    if (!is_floating(bias.dtype())) {
      throw TypeError(concat(name, ": expected a floating array (argument 'bias'), got ", to_string(bias.type()),
                             "; booleans are the argument 'attention_mask'"));
    }
    const bool as_it_is = bias.dtype() == query.dtype() || bias.dtype() == attention_sum_dtype(query.dtype());
    if (!as_it_is || bias.weak_type())
      bias = lax::convert_element_type(bias, attention_sum_dtype(query.dtype()), false);
    inputs.push_back(with_four_axes(name, "bias", bias));
  }
  if (operands.key_segments && !operands.query_segments) {
    throw ValueError(concat(name,
                            ": segments of keys (argument 'key_segment_ids') need those of queries (argument "
                            "'segment_ids')"));
  }
  if (operands.query_segments) {
    auto ids = [&](const char* argument, const Array& x) {
      if (is_integer(x.dtype()) && x.ndim() == 2) return lax::convert_element_type(x, DType::int32, false);
      throw TypeError(
          concat(name, ": expected int32 [batch, length] (argument '", argument, "'), got ", to_string(x.type())));
    };
    inputs.push_back(ids("segment_ids", *operands.query_segments));
    inputs.push_back(operands.key_segments ? ids("key_segment_ids", *operands.key_segments) : inputs.back());
  }
  if (operands.dropout_key) inputs.push_back(key_words(name, *operands.dropout_key));
  if (operands.blocks) inputs.push_back(with_four_axes(name, "blocks", *operands.blocks));
  attrs = attrs.with("mask", operands.mask.has_value())
              .with("bias", operands.bias.has_value())
              .with("segments", operands.query_segments.has_value())
              .with("blocks", operands.blocks.has_value());
  return inputs;
}

Array bind_attention(const Primitive& primitive, const AttentionOperands& operands, Attrs attrs) {
  const Arrays inputs = attention_inputs(operands, attrs);
  return capibara::bind(primitive, inputs, attrs)[0];
}

}  // namespace capibara::kernels
