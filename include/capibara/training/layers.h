// Layers of language models as functions of their parameters: embedding, norms, rotary attention, Mamba, experts.
//
// Activations are [batch, length, width]. A layer takes its parameters by name from a flat map, behind a prefix that
// ends with a dot: "layers.0.attention.".
#pragma once

#include <capibara/kernels/quantized.h>
#include <capibara/model.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::training {

using capibara::Parameters;

// The parameter of this name; ValueError with the nearest name where there is none.
const Array& parameter(const Parameters& parameters, const std::string& name);

// x times the logistic function of x.
Array silu(const Array& x);
// The matrix of codes that parameters have in place of a name; none where they have none. Its arrays are `name`.codes,
// `name`.scale and, of vectors, `name`.codebook.
std::optional<kernels::QuantizedMatrix> find_codes(const Parameters& parameters, const std::string& name,
                                                   int64_t inputs);
// Rows of a table [vocabulary, width] for tokens of any shape.
Array embed(const Array& table, const Array& tokens);
// x [..., inputs] times `prefix`weight [inputs, outputs], or its codes, plus `prefix`bias where there is one.
Array linear(const Parameters& parameters, const std::string& prefix, const Array& x);
// Logits [..., vocabulary] by the table of the embedding.
Array tied_head(const Array& table, const Array& x);
// Layer normalization where the parameters have `prefix`bias, else root mean square normalization.
Array normalize(const Parameters& parameters, const std::string& prefix, const Array& x, double epsilon);
// Rotates queries or keys [batch, heads, length, head_dim] by angles that grow with the position. Pairs are (i, i +
// head_dim / 2); `first` is the position of the first row, an int32 scalar.
Array rotate(const Array& x, const Array& first, double base);

// Keys and values of the tokens so far, [batch, key_heads, capacity, head_dim]; for Mamba the inputs of the convolution
// [batch, taps - 1, inner] and the state [batch, inner, state].
using LayerCache = std::pair<Array, Array>;
struct CachePosition {
  LayerCache arrays;
  Array position;  // tokens before these, an int32 scalar
};

struct AttentionOptions {
  int64_t heads = 1, key_heads = 1;
  std::optional<double> rope_base = 10000;  // none: no rotation
};
// Causal attention by kernels::flash_attention: parameters qkv.weight and out.weight, biases where they exist. With a
// cache, which it updates, the tokens follow those in it.
Array attention(const Parameters& parameters, const std::string& prefix, const Array& x,
                const AttentionOptions& options, CachePosition* cache = nullptr);

struct MambaOptions {
  int64_t state = 16;
};
// The block of Mamba: projection, causal convolution, selective scan, gate, projection. Parameters in.weight, conv,
// conv_bias, x.weight, dt.weight, dt_bias, A_log, D, out.weight.
Array mamba(const Parameters& parameters, const std::string& prefix, const Array& x, const MambaOptions& options,
            CachePosition* cache = nullptr);

// The feed-forward layer: silu(x gate) * (x up), then down; parameters gate_up.weight and down.weight.
Array gated_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x);
// The feed-forward layer of GPT-2: gelu by tanh between up.weight and down.weight.
Array gelu_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x);
// The mixture of gated experts by kernels::moe_feed_forward, and the loss of its load; parameters router, gate, up,
// down.
std::pair<Array, Array> expert_feed_forward(const Parameters& parameters, const std::string& prefix, const Array& x,
                                            int64_t experts_per_token);
// What the loss of the load is made of, [2, experts]: the mean probability of each expert and its share of the choices.
// Those of a batch are the means of those of its parts, which the loss is not.
Array expert_shares(const Parameters& parameters, const std::string& prefix, const Array& x, int64_t experts_per_token);
// The loss of such shares, [layers, 2, experts], summed over the layers.
Array load_of_shares(const Array& shares);

}  // namespace capibara::training
