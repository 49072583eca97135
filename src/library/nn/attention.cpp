// jax.nn: scaled dot-product attention, composed of two contractions and a softmax in float32.
#include <capibara/nn/attention.h>
#include <capibara/nn/softmax.h>
#include <capibara/numpy/contraction.h>
#include <capibara/numpy/indexing.h>
#include <capibara/transforms.h>

#include <algorithm>
#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::nn {

using namespace terms;

namespace {

constexpr const char* name = "dot_product_attention";

Array with_four_axes(const Array& x) { return x.ndim() < 4 ? lax::broadcast_to_rank(x, 4) : x; }

// -1 stands for any size.
void check(const char* what, const Array& x, const Shape& shape, std::optional<DType> dtype) {
  bool fits = x.shape().size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == -1 || shape[i] == x.shape()[i];
  if (fits && (!dtype || *dtype == x.dtype())) return;
  std::string expected;
  for (int64_t size : shape)
    expected += concat(expected.empty() ? "" : ",", size < 0 ? std::string("?") : concat(size));
  throw ValueError(concat(name, ": ", what, " must be ", dtype ? to_string(*dtype) : "an array", "[", expected,
                          "], got ", to_string(x.type())));
}

// Attention without heads gives an empty array.
int64_t heads_of_group(int64_t heads, int64_t groups) { return groups == 0 ? 0 : heads / groups; }

// [batch, heads, queries, keys] to [batch, groups, heads of a group, queries, keys]; a single head is shared by all.
Array grouped(const char* what, const Array& x, int64_t groups, int64_t heads) {
  const Shape& s = x.shape();
  const int64_t per_group = heads_of_group(heads, groups);
  if (s[1] == 1) {
    const Array shared = lax::expand_dims(x, {2});
    return per_group == 1 ? shared : lax::broadcast_in_dim(shared, {s[0], 1, per_group, s[2], s[3]}, {0, 1, 2, 3, 4});
  }
  if (s[1] != heads) {
    throw ValueError(concat(name, ": ", what, " must have 1 or ", heads, " heads, got ", to_string(x.type())));
  }
  return lax::reshape(x, {s[0], groups, per_group, s[2], s[3]});
}

Array lower_triangle(const Array& x) {
  return named_call("tril", {x}, [](std::span<const Array> in) { return Arrays{numpy::tril(in[0])}; });
}

// positions < lengths, both along axes of [batch, queries, keys] or [batch, queries].
Array is_within(int64_t size, const Array& lengths, int64_t rank, int64_t axis) {
  const Array positions = lax::iota(DType::int32, size);
  Ints others, rest;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) others.push_back(i);
    if (i != 0) rest.push_back(i);
  }
  const Array along = lax::expand_dims(positions, others);
  return along < lax::expand_dims(lengths, rest);
}

Array window_seen(int64_t queries, int64_t keys, std::pair<int64_t, int64_t> window) {
  const Array query = lax::broadcasted_iota(DType::int32, {queries, 1}, 0);
  const Array key = lax::broadcasted_iota(DType::int32, {1, keys}, 1);
  const Array from = query <= key + window.first;
  const Array to = query >= key - window.second;
  return to & from;
}

Array lengths_seen(const AttentionOptions& options, int64_t queries, int64_t keys) {
  const Array always = array<bool>({true}, Shape{});
  const Array query = options.query_seq_lengths ? is_within(queries, *options.query_seq_lengths, 3, 1) : always;
  const Array key = options.key_value_seq_lengths ? is_within(keys, *options.key_value_seq_lengths, 3, 2) : always;
  return lax::expand_dims(query & key, {1});
}

bool hides_keys(const Array& mask, const AttentionOptions& options) {
  return mask.defined() || options.is_causal || options.local_window_size || options.query_seq_lengths ||
         options.key_value_seq_lengths;
}

// Logits [batch, heads, queries, keys] with a large negative number for hidden keys.
Array hide_unseen(const Array& logits, const Array& mask, const AttentionOptions& options) {
  if (!hides_keys(mask, options)) return logits;
  const int64_t queries = logits.shape(2), keys = logits.shape(3);
  const Array truth = array<bool>({true}, Shape{});
  Array seen = lax::full(logits.shape(), truth);
  if (mask.defined()) seen = seen & mask;
  if (options.is_causal) seen = seen & lax::expand_dims(lower_triangle(lax::full({queries, keys}, truth)), {0, 1});
  if (options.local_window_size) {
    seen = seen & lax::expand_dims(window_seen(queries, keys, *options.local_window_size), {0, 1});
  }
  if (options.query_seq_lengths || options.key_value_seq_lengths) seen = seen & lengths_seen(options, queries, keys);
  // Not minus infinity: a row in which every key is hidden must stay finite.
  const double large = 0.7 * std::min(finfo(logits.dtype()).max, finfo(DType::float32).max);
  return where(seen, logits, constant(logits, -large));
}

// Narrow floats are multiplied in their own dtype and accumulated in float32.
std::string logits_precision(DType dtype) {
  return dtype == DType::bfloat16 ? "BF16_BF16_F32" : dtype == DType::float16 ? "F16_F16_F32" : "";
}

// Attention with separate keys for each head: query [batch, queries, heads, size], bias and mask [batch, heads,
// queries, keys]. Returns [batch, queries, heads, size], and [batch, queries, heads] if requested.
Arrays attend_heads(const Array& query, const Array& key, const Array& value, const Array& bias, const Array& mask,
                    const AttentionOptions& options, bool with_residual) {
  const DType dtype = key.dtype(), wide = dtype == DType::float64 ? DType::float64 : DType::float32;
  Array logits = numpy::einsum("BTNH,BSNH->BNTS", {query, key},
                               {.precision = logits_precision(dtype), .preferred_element_type = wide});
  const Array scale = options.scale ? *options.scale : Array(1 / std::sqrt(static_cast<double>(key.shape(3))));
  logits = logits * lax::convert_element_type(scale, wide, false);
  if (bias.defined()) logits = lax::convert_element_type(logits + bias, wide, false);
  logits = lax::convert_element_type(hide_unseen(logits, mask, options), DType::float32, false);
  const Array probabilities = lax::convert_element_type(softmax(logits), dtype, false);
  Array encoded = numpy::einsum("BNTS,BSNH->BTNH", {probabilities, value});
  if (options.query_seq_lengths) {
    const Array inside = lax::expand_dims(is_within(query.shape(1), *options.query_seq_lengths, 2, 1), {2, 3});
    encoded = encoded * lax::convert_element_type(inside, encoded.dtype(), false);
  }
  if (!with_residual) return {encoded};
  const Array denominators = lax::convert_element_type(logsumexp(logits, {.axis = -1}), dtype, false);
  return {encoded, lax::stop_gradient(lax::transpose(denominators, {0, 2, 1}))};
}

struct Attention {
  Array encoded, residual;
};

void check_operands(const Array& query, const Array& key, const Array& value, const AttentionOptions& options) {
  const int64_t batch = key.shape(0), keys = key.shape(1), groups = key.shape(2), size = key.shape(3);
  check("value", value, {batch, keys, groups, size}, key.dtype());
  check("query", query, {batch, -1, -1, size}, key.dtype());
  if (options.query_seq_lengths) check("query_seq_lengths", *options.query_seq_lengths, {batch}, DType::int32);
  if (options.key_value_seq_lengths) {
    check("key_value_seq_lengths", *options.key_value_seq_lengths, {batch}, DType::int32);
  }
  if (query.shape(2) != groups * heads_of_group(query.shape(2), groups)) {
    throw ValueError(concat(name, ": the number of query heads must be a multiple of that of key heads, got ",
                            query.shape(2), " and ", groups));
  }
  if (!options.implementation.empty() && options.implementation != "xla") {
    throw ValueError(concat(name, ": implementation must be None or 'xla', got '", options.implementation, "'"));
  }
}

// The heads of a group are mapped with vmap, as in jax, so that programs print alike.
Attention attend(const Array& query_in, const Array& key_in, const Array& value_in, const AttentionOptions& options,
                 bool with_residual) {
  const Array query = with_four_axes(query_in), key = with_four_axes(key_in), value = with_four_axes(value_in);
  if (key.ndim() != 4) throw ValueError(concat(name, ": key must have 3 or 4 axes, got ", to_string(key_in.type())));
  Array bias, mask;
  if (options.bias) bias = with_four_axes(*options.bias);
  if (options.mask) mask = with_four_axes(*options.mask);
  if (mask.defined()) check("mask", mask, {-1, -1, -1, -1}, DType::bool_);
  if (bias.defined()) check("bias", bias, {-1, -1, -1, -1}, std::nullopt);
  check_operands(query, key, value, options);
  const int64_t heads = query.shape(2), groups = key.shape(2);
  Arrays mapped;  // optional operands with an axis of heads per group
  const Array queries =
      lax::reshape(query, {query.shape(0), query.shape(1), groups, heads_of_group(heads, groups), query.shape(3)});
  if (bias.defined()) mapped.push_back(grouped("bias", bias, groups, heads));
  if (mask.defined()) mapped.push_back(grouped("mask", mask, groups, heads));
  auto one = [&](const Array& own, const Arrays& extras) {
    const Array own_bias = bias.defined() ? extras[0] : Array(), own_mask = mask.defined() ? extras.back() : Array();
    return attend_heads(own, key, value, own_bias, own_mask, options, with_residual);
  };
  const Arrays results = vmap(one, {.in_axes = {3, 2}, .out_axes = 3})(queries, mapped);
  Attention result{lax::reshape(results[0], query_in.shape()), {}};
  if (with_residual) {
    result.residual = lax::reshape(results[1], Shape(query_in.shape().begin(), query_in.shape().end() - 1));
  }
  return result;
}

}  // namespace

Array dot_product_attention(const Array& query, const Array& key, const Array& value, const AttentionOptions& options) {
  return attend(query, key, value, options, false).encoded;
}

std::pair<Array, Array> dot_product_attention_with_residual(const Array& query, const Array& key, const Array& value,
                                                            const AttentionOptions& options) {
  Attention result = attend(query, key, value, options, true);
  return {std::move(result.encoded), std::move(result.residual)};
}

}  // namespace capibara::jax::nn
