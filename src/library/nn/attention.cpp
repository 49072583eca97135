// jax.nn: scaled dot-product attention, composed of two contractions and a softmax in float32.
#include <capibara/nn/attention.h>
#include <capibara/nn/softmax.h>

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
  for (int64_t size : shape) expected += concat(expected.empty() ? "" : ",", size < 0 ? std::string("?") : concat(size));
  throw ValueError(concat(name, ": ", what, " must be ", dtype ? to_string(*dtype) : "an array", "[", expected,
                          "], got ", to_string(x.type())));
}

// [batch, heads, queries, keys] to [batch, groups, heads of a group, queries, keys]; a single head is shared by all.
Array grouped(const char* what, const Array& x, int64_t groups, int64_t heads) {
  const Shape& s = x.shape();
  if (s[1] == 1) return lax::expand_dims(x, {2});
  if (s[1] != heads) {
    throw ValueError(concat(name, ": ", what, " must have 1 or ", heads, " heads, got ", to_string(x.type())));
  }
  return lax::reshape(x, {s[0], groups, heads / groups, s[2], s[3]});
}

Array positions(const Array& logits, int64_t axis) {
  Shape shape(5, 1);
  shape[static_cast<std::size_t>(axis)] = logits.shape(axis);
  return lax::broadcasted_iota(DType::int32, shape, axis);
}

Array lengths_of(const Array& lengths) { return lax::expand_dims(lengths, {1, 2, 3, 4}); }

// Logits [batch, groups, heads of a group, queries, keys] with a large negative number where a key is not seen.
Array hide_unseen(const Array& logits, const std::optional<Array>& mask, const AttentionOptions& options) {
  Array seen;
  auto require = [&](const Array& condition) { seen = seen.defined() ? seen & condition : condition; };
  const Array query = positions(logits, 3), key = positions(logits, 4);
  if (mask) require(*mask);
  if (options.is_causal) require(query >= key);
  if (options.local_window_size) {
    const auto [left, right] = *options.local_window_size;
    Array is_at_most = query <= key + left;
    require(is_at_most & (query >= key - right));
  }
  if (options.query_seq_lengths) require(query < lengths_of(*options.query_seq_lengths));
  if (options.key_value_seq_lengths) require(key < lengths_of(*options.key_value_seq_lengths));
  if (!seen.defined()) return logits;
  // Not minus infinity: a row in which nothing is seen must stay finite.
  const double large = 0.7 * std::min(finfo(logits.dtype()).max, finfo(DType::float32).max);
  return where(seen, logits, constant(logits, -large));
}

struct Attention {
  Array encoded, residual;
};

Attention attend(const Array& query_in, const Array& key_in, const Array& value_in, const AttentionOptions& options,
                 bool with_residual) {
  const Array query = with_four_axes(query_in), key = with_four_axes(key_in), value = with_four_axes(value_in);
  if (key.ndim() != 4) throw ValueError(concat(name, ": key must have 3 or 4 axes, got ", to_string(key_in.type())));
  const int64_t batch = key.shape(0), keys = key.shape(1), groups = key.shape(2), size = key.shape(3);
  check("value", value, {batch, keys, groups, size}, key.dtype());
  check("query", query, {batch, -1, -1, size}, key.dtype());
  std::optional<Array> mask, bias;
  if (options.mask) mask = with_four_axes(*options.mask);
  if (options.bias) bias = with_four_axes(*options.bias);
  if (mask) check("mask", *mask, {-1, -1, -1, -1}, DType::bool_);
  if (bias) check("bias", *bias, {-1, -1, -1, -1}, std::nullopt);
  if (options.query_seq_lengths) check("query_seq_lengths", *options.query_seq_lengths, {batch}, DType::int32);
  if (options.key_value_seq_lengths) {
    check("key_value_seq_lengths", *options.key_value_seq_lengths, {batch}, DType::int32);
  }
  const int64_t queries = query.shape(1), heads = query.shape(2);
  if (heads % groups != 0) {
    throw ValueError(concat(name, ": the number of query heads must be a multiple of that of key heads, got ", heads,
                            " and ", groups));
  }
  if (!options.implementation.empty() && options.implementation != "xla") {
    throw ValueError(concat(name, ": implementation must be None or 'xla', got '", options.implementation, "'"));
  }
  const int64_t per_group = heads / groups;
  const DType logits_dtype = key.dtype() == DType::float64 ? DType::float64 : DType::float32;
  Array logits = lax::dot_general(lax::reshape(query, {batch, queries, groups, per_group, size}), key,
                                  {{4}, {3}, {0, 2}, {0, 2}}, {.precision = {}, .preferred_element_type = logits_dtype});
  logits = lax::transpose(logits, {0, 1, 3, 2, 4});
  const Array scale = options.scale ? *options.scale : Array(1 / std::sqrt(static_cast<double>(size)));
  logits = logits * lax::convert_element_type(scale, logits_dtype, false);
  if (bias) {
    logits = lax::convert_element_type(logits + grouped("bias", *bias, groups, heads), logits_dtype, false);
  }
  if (mask) mask = grouped("mask", *mask, groups, heads);
  logits = lax::convert_element_type(hide_unseen(logits, mask, options), DType::float32, false);
  const Array probabilities = lax::convert_element_type(softmax(logits), key.dtype(), false);
  Array encoded = lax::dot_general(probabilities, value, {{4}, {1}, {0, 1}, {0, 2}});
  encoded = lax::transpose(encoded, {0, 3, 1, 2, 4});  // [batch, queries, groups, heads of a group, size]
  if (options.query_seq_lengths) {
    const Array positions_encoded = positions(encoded, 1);
    const Array inside = positions_encoded < lengths_of(*options.query_seq_lengths);
    encoded = encoded * lax::convert_element_type(inside, encoded.dtype(), false);
  }
  Attention result{lax::reshape(encoded, query_in.shape()), {}};
  if (with_residual) {
    const Array denominators = lax::convert_element_type(logsumexp(logits, {.axis = -1}), key.dtype(), false);
    const Shape shape(query_in.shape().begin(), query_in.shape().end() - 1);
    result.residual = lax::stop_gradient(lax::reshape(lax::transpose(denominators, {0, 3, 1, 2}), shape));
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
