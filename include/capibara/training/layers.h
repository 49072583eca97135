// Layers of language models as functions of their parameters: embedding, norms, rotary attention, Mamba, experts.
//
// Activations are [batch, length, width]. A layer looks up its parameters by name in a flat map, under a prefix that
// ends with a dot: "layers.0.attention.".
#pragma once

#include <capibara/kernels/quantized.h>
#include <capibara/model.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::training {

using capibara::Parameters;

// The parameter of this name; ValueError with the nearest name if there is none.
const Array& parameter(const Parameters& parameters, const std::string& name);

// x times the logistic function of x.
Array silu(const Array& x);
// The matrix of codes stored instead of this parameter; absent if there is none. Its arrays are `name`.codes,
// `name`.scale and, for vectors, `name`.codebook.
std::optional<kernels::QuantizedMatrix> find_codes(const Parameters& parameters, const std::string& name,
                                                   int64_t inputs);
// Rows of a table [vocabulary, width] for tokens of any shape.
Array embed(const Array& table, const Array& tokens);
// x [..., inputs] times `prefix`weight [inputs, outputs], or its codes, plus `prefix`bias if present.
Array linear(const Parameters& parameters, const std::string& prefix, const Array& x);
// Logits [..., vocabulary] from the embedding table.
Array tied_head(const Array& table, const Array& x);
// Layer normalization if the parameters have `prefix`bias, else root mean square normalization.
Array normalize(const Parameters& parameters, const std::string& prefix, const Array& x, double epsilon);
// Rotates queries or keys [batch, heads, length, head_dim] by angles that grow with the position. Pairs are (i, i +
// head_dim / 2); `first` is the position of the first row, an int32 scalar.
Array rotate(const Array& x, const Array& first, double base);

// Keys and values of the tokens so far, [batch, key_heads, capacity, head_dim]; for Mamba the convolution inputs
// [batch, taps - 1, inner] and the state [batch, inner, state].
using LayerCache = std::pair<Array, Array>;
struct CachePosition {
  LayerCache arrays;
  Array position;  // number of preceding tokens, an int32 scalar
};

struct AttentionOptions {
  int64_t heads = 1, key_heads = 1;
  std::optional<double> rope_base = 10000;  // none: no rotation
};
// Causal attention by kernels::flash_attention: parameters qkv.weight and out.weight, and biases if present. With a
// cache, which is updated, the tokens follow the cached ones.
Array attention(const Parameters& parameters, const std::string& prefix, const Array& x,
                const AttentionOptions& options, CachePosition* cache = nullptr);

struct MambaOptions {
  int64_t state = 16;
};
// The Mamba block: projection, causal convolution, selective scan, gate, projection. Parameters in.weight, conv,
// conv_bias, x.weight, dt.weight, dt_bias, A_log, D, out.weight.
Array mamba(const Parameters& parameters, const std::string& prefix, const Array& x, const MambaOptions& options,
            CachePosition* cache = nullptr);

// The feed-forward layer: silu(x gate) * (x up), then down; parameters gate_up.weight and down.weight.
Array gated_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x);
// The feed-forward layer of GPT-2: gelu by tanh between up.weight and down.weight.
Array gelu_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x);
// The mixture of gated experts by kernels::moe_feed_forward, and its load-balancing loss; parameters router, gate, up,
// down.
std::pair<Array, Array> expert_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x,
                                            int64_t experts_per_token);
// Inputs of the load-balancing loss, [2, experts]: the mean probability of each expert and its share of the choices.
// Unlike the loss, those of a batch are the means of those of its parts.
Array expert_shares(const Parameters& parameters, const std::string& prefix, const Array& x, int64_t experts_per_token);
// The load-balancing loss of such shares, [layers, 2, experts], summed over the layers.
Array load_of_shares(const Array& shares);

}  // namespace capibara::training
