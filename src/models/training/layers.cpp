// Layers of language models: compositions of lax and of the fused kernels.
#include <capibara/training/layers.h>

#include <capibara/indexing.h>
#include <capibara/kernels/attention.h>
#include <capibara/kernels/experts.h>
#include <capibara/kernels/norms.h>
#include <capibara/kernels/recurrence.h>
#include <capibara/lax.h>
#include <capibara/tree.h>

#include <cmath>
#include <numbers>

#include "core/sharding/explicit.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

const Array* find(const Parameters& parameters, const std::string& name) {
  const auto it = parameters.find(name);
  return it == parameters.end() ? nullptr : &it->second;
}

// Contracts the last axis of x with an axis of the weights.
Array project(const Array& x, const Array& weights, int64_t axis) {
  return lax::dot_general(x, weights, {.lhs_contracting = {x.ndim() - 1}, .rhs_contracting = {axis}});
}

// [batch, length, heads * head_dim] -> [batch, heads, length, head_dim].
Array split_heads(const Array& x, int64_t heads) {
  Array split = lax::reshape(x, {x.shape(0), x.shape(1), heads, x.shape(2) / heads});
  return lax::transpose(split, {0, 2, 1, 3});
}

Array merge_heads(const Array& x) {
  Array rows = lax::transpose(x, {0, 2, 1, 3});
  return lax::reshape(rows, {rows.shape(0), rows.shape(1), rows.shape(2) * rows.shape(3)});
}

// bool [1, 1, queries, keys]: query i of a chunk that begins at `position` attends to keys up to position + i.
Array causal_mask(const Array& position, int64_t queries, int64_t keys) {
  Array row = lax::broadcasted_iota(DType::int32, {1, 1, queries, keys}, 2) + position;
  return lax::broadcasted_iota(DType::int32, {1, 1, queries, keys}, 3) <= row;
}

}  // namespace

const Array& parameter(const Parameters& parameters, const std::string& name) {
  if (const Array* found = find(parameters, name)) return *found;
  // Names with the longest common prefix are the most likely to be intended.
  std::string nearest;
  std::size_t longest = 0;
  for (const auto& [other, array] : parameters) {
    std::size_t shared = 0;
    while (shared < std::min(other.size(), name.size()) && other[shared] == name[shared]) ++shared;
    if (shared > longest || nearest.empty()) nearest = other, longest = shared;
  }
  throw ValueError(concat("parameters: '", name, "' is missing among ", parameters.size(), " names",
                          nearest.empty() ? "" : "; the nearest is '" + nearest + "'"));
}

Array silu(const Array& x) { return x * lax::logistic(x); }

std::optional<kernels::QuantizedMatrix> find_codes(const Parameters& parameters, const std::string& name,
                                                   int64_t inputs) {
  const Array* codes = find(parameters, name + ".codes");
  if (!codes) return std::nullopt;
  kernels::QuantizedMatrix matrix{*codes, parameter(parameters, name + ".scale"), {}, inputs};
  if (const Array* codebook = find(parameters, name + ".codebook")) matrix.codebook = *codebook;
  if (const Array* scale = find(parameters, name + ".input_scale")) matrix.input_scale = *scale;
  return matrix;
}

Array embed(const Array& table, const Array& tokens) {
  const Array indices = lax::expand_dims(tokens, {tokens.ndim()});
  return lax::gather(table, indices,
                     {.offset_dims = {tokens.ndim()}, .collapsed_slice_dims = {0}, .start_index_map = {0}},
                     {1, table.shape(1)}, {.mode = lax::GatherScatterMode::clip});
}

Array linear(const Parameters& parameters, const std::string& prefix, const Array& x) {
  const auto codes = find_codes(parameters, prefix + "weight", x.shape(x.ndim() - 1));
  Array result = codes ? kernels::quantized_matmul(x, *codes) : project(x, parameter(parameters, prefix + "weight"), 0);
  const Array* bias = find(parameters, prefix + "bias");
  return bias ? result + *bias : result;
}

Array tied_head(const Array& table, const Array& x) { return project(x, table, 1); }

Array normalize(const Parameters& parameters, const std::string& prefix, const Array& x, double epsilon) {
  const Array scale = parameter(parameters, prefix + "scale");
  const Array* bias = find(parameters, prefix + "bias");
  if (bias) return kernels::layer_norm(x, scale, *bias, {.epsilon = epsilon});
  return kernels::rms_norm(x, scale, {.epsilon = epsilon});
}

Array rotate(const Array& x, const Array& first, double base) {
  const int64_t length = x.shape(2), half = x.shape(3) / 2;
  Array pair = lax::convert_element_type(lax::broadcasted_iota(DType::int32, {length, half}, 1), DType::float32);
  Array position =
      lax::convert_element_type(lax::broadcasted_iota(DType::int32, {length, half}, 0) + first, DType::float32);
  Array frequency = lax::exp(pair * (-std::log(base) / static_cast<double>(half)));
  Array angle = position * frequency;
  Array cosine = lax::convert_element_type(lax::cos(angle), x.dtype());
  Array sine = lax::convert_element_type(lax::sin(angle), x.dtype());
  Array low = lax::slice_in_dim(x, 0, half, 1, 3), high = lax::slice_in_dim(x, half, 2 * half, 1, 3);
  Array low_cosine = low * cosine, high_sine = high * sine, high_cosine = high * cosine, low_sine = low * sine;
  return lax::concatenate({low_cosine - high_sine, high_cosine + low_sine}, 3);
}

namespace {

// True if the context mesh has an axis of this name with several devices.
bool context_splits(const std::string& axis) {
  const auto& around = context_mesh();
  return around && around->mesh.has(axis) && around->mesh.axis_size(axis) > 1;
}

}  // namespace

Array attention(const Parameters& parameters, const std::string& prefix, const Array& x,
                const AttentionOptions& options, CachePosition* cache) {
  Array joined = linear(parameters, prefix + "qkv.", x);
  const int64_t head_dim = joined.shape(2) / (options.heads + 2 * options.key_heads);
  const int64_t keys = options.key_heads * head_dim;
  Arrays parts = lax::split(joined, {options.heads * head_dim, keys, keys}, 2);
  Array query = split_heads(parts[0], options.heads), key = split_heads(parts[1], options.key_heads),
        value = split_heads(parts[2], options.key_heads);
  Array first = cache ? cache->position : lax::full({}, 0, DType::int32);
  if (options.rope_base) {
    query = rotate(query, first, *options.rope_base);
    key = rotate(key, first, *options.rope_base);
  }
  Array mixed;
  if (cache) {
    const Array zero = lax::full({}, 0, DType::int32);
    cache->arrays.first = lax::dynamic_update_slice(cache->arrays.first, key, {zero, zero, first, zero});
    cache->arrays.second = lax::dynamic_update_slice(cache->arrays.second, value, {zero, zero, first, zero});
    Array mask = causal_mask(first, x.shape(1), cache->arrays.first.shape(2));
    mixed = kernels::flash_attention(query, cache->arrays.first, cache->arrays.second, {.attention_mask = mask});
  } else {
    kernels::FlashAttentionOptions whole{.causal = true};
    // Outside of traces, arrays themselves show whether they are whole.
    if (x.is_tracer() && context_splits("sequence")) whole.sequence_parallel = true, whole.sequence_axis = "sequence";
    mixed = kernels::flash_attention(query, key, value, whole);
  }
  return linear(parameters, prefix + "out.", merge_heads(mixed));
}

Array mamba(const Parameters& parameters, const std::string& prefix, const Array& x, const MambaOptions& options,
            CachePosition* cache) {
  const Array conv = parameter(parameters, prefix + "conv");  // [taps, inner]
  const int64_t inner = conv.shape(1), taps = conv.shape(0), length = x.shape(1);
  Arrays halves = lax::split(linear(parameters, prefix + "in.", x), {inner, inner}, 2);
  Array before = cache ? cache->arrays.first : lax::full({x.shape(0), taps - 1, inner}, 0.0, x.dtype());
  Array longer = lax::concatenate({before, halves[0]}, 1);
  Array u = lax::broadcast_in_dim(parameter(parameters, prefix + "conv_bias"), halves[0].shape(), {2});
  for (int64_t tap = 0; tap < taps; ++tap) {
    u = u + lax::slice_in_dim(longer, tap, tap + length, 1, 1) * lax::index_in_dim(conv, tap, 0, true);
  }
  u = silu(u);
  Array small = linear(parameters, prefix + "x.", u);
  const int64_t rank = small.shape(2) - 2 * options.state;
  Arrays parts = lax::split(small, {rank, options.state, options.state}, 2);
  kernels::SelectiveScanOptions scan;
  scan.D = parameter(parameters, prefix + "D");
  scan.z = halves[1];
  scan.delta_bias = parameter(parameters, prefix + "dt_bias");
  scan.delta_softplus = true;
  if (cache) scan.initial_state = cache->arrays.second;
  Array delta = linear(parameters, prefix + "dt.", parts[0]);
  Array decay = -lax::exp(parameter(parameters, prefix + "A_log"));
  auto [y, state] = kernels::selective_scan(u, delta, decay, parts[1], parts[2], scan);
  if (cache) cache->arrays = {lax::slice_in_dim(longer, length, length + taps - 1, 1, 1), state};
  return linear(parameters, prefix + "out.", y);
}

Array gated_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x) {
  Array joined = linear(parameters, prefix + "gate_up.", x);
  const int64_t hidden = joined.shape(2) / 2;
  Arrays halves = lax::split(joined, {hidden, hidden}, 2);
  return linear(parameters, prefix + "down.", silu(halves[0]) * halves[1]);
}

Array gelu_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x) {
  Array h = linear(parameters, prefix + "up.", x);
  Array inside = std::sqrt(2 / std::numbers::pi) * (h + 0.044715 * lax::integer_pow(h, 3));
  return linear(parameters, prefix + "down.", 0.5 * h * (1 + lax::tanh(inside)));
}

namespace {

// One expert of gated weights as codes: x [rows, width] -> [rows, width].
struct CodedExpert {
  kernels::QuantizedMatrix gate, up, down;

  Array operator()(const Array& x) const {
    Array left = silu(kernels::quantized_matmul(x, gate)), right = kernels::quantized_matmul(x, up);
    return kernels::quantized_matmul(left * right, down);
  }
};

// Experts with weights as codes. A single token multiplies only by its own experts, several tokens by all of them.
std::pair<Array, Array> coded_experts(const Parameters& parameters, const std::string& prefix, const Array& x,
                                      int64_t experts_per_token) {
  const Array router = parameter(parameters, prefix + "router");
  const int64_t experts = router.shape(1), width = x.shape(x.ndim() - 1), rows = x.size() / width;
  Array flat = lax::reshape(x, {rows, width});
  const kernels::MoeRouting routing =
      kernels::moe_routing_kernel(flat, experts, experts_per_token, true, {.gate = router});
  auto matrix_at = [&](const char* name, int64_t inputs, const Array& expert) {
    kernels::QuantizedMatrix matrix = *find_codes(parameters, prefix + name, inputs);
    for (Array* part : {&matrix.codes, &matrix.scale}) *part = lax::dynamic_index_in_dim(*part, expert, 0, false);
    if (matrix.codebook) matrix.codebook = lax::dynamic_index_in_dim(*matrix.codebook, expert, 0, false);
    return matrix;
  };
  auto expert_at = [&](const Array& index) {
    CodedExpert expert;
    expert.gate = matrix_at("gate", width, index);
    expert.up = matrix_at("up", width, index);
    expert.down = matrix_at("down", expert.up.outputs(), index);
    return expert;
  };
  Array sum = lax::full({rows, width}, 0.0, DType::float32);
  const int64_t count = rows == 1 ? experts_per_token : experts;
  for (int64_t i = 0; i < count; ++i) {
    Array index = lax::full({}, static_cast<int32_t>(i), DType::int32), weight;
    if (rows == 1) {
      index = lax::reshape(lax::index_in_dim(routing.experts, i, 1, false), {});
      weight = lax::index_in_dim(routing.weights, i, 1, true);
    } else {
      Array chosen = lax::eq(routing.experts, lax::full_like(routing.experts, static_cast<double>(i)));
      Array own = lax::select(chosen, routing.weights, lax::full_like(routing.weights, 0.0));
      weight = lax::expand_dims(lax::reduce_sum(own, {.axes = {1}}), {1});
    }
    sum = sum + lax::convert_element_type(expert_at(index)(flat), DType::float32) * weight;
  }
  return {lax::reshape(lax::convert_element_type(sum, x.dtype()), x.shape()), routing.aux_loss};
}

}  // namespace

std::pair<Array, Array> expert_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x,
                                            int64_t experts_per_token) {
  if (find(parameters, prefix + "up.codes")) return coded_experts(parameters, prefix, x, experts_per_token);
  kernels::MoeFeedForwardOptions options;
  options.gate_weights = parameter(parameters, prefix + "gate");
  auto result =
      kernels::moe_feed_forward(x, parameter(parameters, prefix + "router"), parameter(parameters, prefix + "up"),
                                parameter(parameters, prefix + "down"), experts_per_token, options);
  return {result.output, result.aux_loss};
}

Array expert_shares(const Parameters& parameters, const std::string& prefix, const Array& x,
                    int64_t experts_per_token) {
  const Array& router = parameter(parameters, prefix + "router");
  const int64_t experts = router.shape(1), width = x.shape(x.ndim() - 1), rows = x.size() / width;
  const Array logits = lax::dot_general(lax::reshape(x, {rows, width}), router, {{1}, {0}, {}, {}},
                                        {.precision = "", .preferred_element_type = DType::float32});
  const kernels::MoeRouting routing = kernels::moe_routing_kernel(logits, experts, experts_per_token);
  auto along_rows = [&](const Array& values) { return lax::broadcast_in_dim(values, logits.shape(), {0}); };
  const Array shifted = lax::exp(logits - along_rows(lax::stop_gradient(lax::reduce_max(logits, {.axes = {1}}))));
  const Array probabilities = shifted / along_rows(lax::reduce_sum(shifted, {.axes = {1}}));
  const Array means = lax::reduce_sum(probabilities, {.axes = {0}}) / static_cast<double>(rows);
  const Array counts = lax::convert_element_type(routing.load, DType::float32);
  return lax::stack({means, counts / static_cast<double>(rows * experts_per_token)}, 0);
}

Array load_of_shares(const Array& shares) {
  const Array means = lax::index_in_dim(shares, 0, 1, false), loads = lax::index_in_dim(shares, 1, 1, false);
  return static_cast<double>(shares.shape(2)) * lax::reduce_sum(means * loads, {.axes = {0, 1}});
}

}  // namespace capibara::training
