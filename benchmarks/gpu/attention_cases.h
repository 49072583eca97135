// Cases of attention: their operands, and values and gradients against the definition.
#pragma once

#include <capibara/kernels/attention.h>

#include <cmath>
#include <optional>
#include <string>

#include "measure.h"

namespace attention_figures {

using namespace measure;
namespace lax = capibara::jax::lax;
namespace jax = capibara::jax;
using capibara::Arrays;
using Options = capibara::kernels::FlashAttentionOptions;

struct Case {
  std::string name;
  int64_t batch, length, heads, groups, size;
  bool causal;
  int64_t window;  // keys before the query; 0: all
  bool bias, gradient;
  double dropout = 0;
  bool mask = false;

  Options options() const {
    Options all{.dropout_rate = dropout, .causal = causal};
    if (dropout > 0) all.dropout_key = jax::random::key(6);
    if (mask) all.attention_mask = normal_bf16(8, {batch, 1, length, length}) > Array(-1.0f).astype(DType::bfloat16);
    if (window > 0) all.window = std::pair<int64_t, int64_t>(window, 0);
    return all;
  }
  double operations() const {
    const double pairs = static_cast<double>(length) * static_cast<double>(length) * (causal ? 0.5 : 1);
    return 4 * static_cast<double>(batch * heads * size) * pairs;
  }
  Array query(int64_t seed) const { return normal_bf16(seed, {batch, length, heads, size}); }
  Array key(int64_t seed) const { return normal_bf16(seed, {batch, length, groups, size}); }
  std::optional<Array> given_bias() const {
    return bias ? std::optional(normal_bf16(9, {1, heads, length, length})) : std::nullopt;
  }
};

inline Array by_heads(const Array& x) { return lax::transpose(x, {0, 2, 1, 3}); }

// Of [batch, length, heads, size], as jax's.
inline Array fused(const Array& q, const Array& k, const Array& v, const Options& options) {
  return by_heads(capibara::kernels::flash_attention(by_heads(q), by_heads(k), by_heads(v), options));
}

// The definition, in float32.
inline Array plain(const Array& q, const Array& k, const Array& v, const Options& options) {
  const auto wide = [](const Array& x) { return by_heads(x.astype(DType::float32)); };
  const int64_t heads = q.shape(2), groups = k.shape(2), length = q.shape(1);
  const auto spread = [&](const Array& x) { return jnp::repeat(wide(x), heads / groups, {.axis = 1}); };
  const jnp::ProductOptions exact{"highest", std::nullopt};
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape(3)));
  Array scores = jnp::matmul(wide(q), jnp::swapaxes(spread(k), 2, 3), exact) * scale;
  if (options.bias) scores = scores + options.bias->astype(DType::float32);
  const Array row = lax::iota(DType::int32, length).reshape({-1, 1}), column = lax::iota(DType::int32, length);
  Array seen = jnp::ones({length, length}).astype(DType::bool_);
  if (options.causal || options.window) seen = column <= row;
  if (options.window) seen = jnp::logical_and(seen, row - column <= Array(static_cast<int32_t>(options.window->first)));
  const Array shares = jax::nn::softmax(jnp::where(seen, scores, Array(-1e30f)), {.axis = -1});
  return by_heads(jnp::matmul(shares, spread(v), exact));
}

template <class F>
auto with_gradient(const F& function) {
  return jax::jit([function](const Array& q, const Array& k, const Array& v, const Array& d) {
    auto [y, pull] = jax::vjp(function, q, k, v);
    auto [dq, dk, dv] = pull(d.astype(y.dtype()));
    return std::tuple(y, dq, dk, dv);
  });
}

// Values and gradients of short sequences against the definition.
inline void check_case(const Case& one) {
  Options options = one.options();
  options.bias = one.given_bias();
  const Array q = one.query(1), k = one.key(2), v = one.key(3), d = one.query(4);
  const auto call = [&](const Array& a, const Array& b, const Array& c) { return fused(a, b, c, options); };
  const auto definition = [&](const Array& a, const Array& b, const Array& c) { return plain(a, b, c, options); };
  const auto got = with_gradient(call)(q, k, v, d), want = with_gradient(definition)(q, k, v, d);
  report(("attention_error_" + one.name).c_str(), difference(std::get<0>(got), std::get<0>(want)), "of the largest");
  const double most =
      std::max({difference(std::get<1>(got), std::get<1>(want)), difference(std::get<2>(got), std::get<2>(want)),
                difference(std::get<3>(got), std::get<3>(want))});
  report(("attention_grad_error_" + one.name).c_str(), most, "of the largest");
}

}  // namespace attention_figures
