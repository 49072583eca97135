// Mixtures of experts: routing of tokens, matmuls of ragged groups of rows, and the feed-forward layer built from them.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>

namespace capibara::kernels {

struct GroupedMatmulOptions {
  bool transpose_weights = false;  // weights are [groups, columns, inner]
};
// Matmul of each group of rows with its own matrix: [..., rows, inner] x [groups, inner, columns]; rows are sorted by
// group. The result is [..., rows, columns]. group_sizes [..., groups] holds the number of rows per group; rows after
// the last group are zero. Sums are at least float32, the result has x's dtype, as do the weights. The weights
// may have the leading dimensions of x.
Array grouped_matmul(const Array& x, const Array& weights, const Array& group_sizes,
                     const GroupedMatmulOptions& options = {});

// The experts chosen for each token. A copy is one choice of one token: number token * top_k + choice. Tokens are
// numbered in row-major order over all leading dimensions.
struct MoeRouting {
  Array weights;      // [..., top_k], at least float32: zero if an expert has no capacity left
  Array experts;      // [..., top_k] int32, by decreasing weight
  Array permutation;  // [copies] int32: copies sorted by expert; dropped ones come last
  Array inverse;      // [copies] int32: position of each copy in that order
  Array group_sizes;  // [num_experts] int32: copies that each expert accepts
  Array load;         // [num_experts] int32: copies that chose it, dropped ones included
  Array aux_loss;     // []: num_experts * sum(load / copies * mean probability), 1 for equal load; else zero
};

struct MoeRoutingOptions {
  std::optional<Array> gate;              // [features, num_experts]; absent: the tokens are logits
  bool renormalize = true;                // the chosen weights sum to 1; else they are the softmax over all experts
  std::optional<double> capacity_factor;  // capacity of ceil(factor * copies / num_experts) copies; none: no limit
};
// Routes tokens to the top_k experts with the largest logits: weights, experts, permutation, inverse, group_sizes,
// load, aux_loss. Tokens are [..., features]; ties between logits go to the lower number, as in lax.top_k. If an
// expert's capacity is limited, first choices come before second ones, and earlier tokens before later ones.
MoeRouting moe_routing_kernel(const Array& tokens, int64_t num_experts, int64_t top_k, bool load_balancing = true,
                              const MoeRoutingOptions& options = {});

struct MoeFeedForwardOptions {
  std::optional<Array> gate_weights;  // [num_experts, features, hidden]: hidden = activation(x gate) * (x up)
  std::string activation = "silu";    // silu, gelu (by tanh), relu
  bool load_balancing = true;
  bool renormalize = true;
  std::optional<double> capacity_factor;
};
struct MoeFeedForwardResult {
  Array output;    // of the shape and dtype of the tokens
  Array aux_loss;  // of the routing
};
// The feed-forward layer of a mixture of experts: routing, a matmul for each expert, activation, another matmul, the
// weighted sum. Tokens [..., features] are routed by gate [features, num_experts], copied to their experts, multiplied
// by up [num_experts, features, hidden], the activation and down [num_experts, hidden, features], and summed by the
// weights of the routing.
MoeFeedForwardResult moe_feed_forward(const Array& tokens, const Array& gate, const Array& up, const Array& down,
                                      int64_t top_k, const MoeFeedForwardOptions& options = {});

}  // namespace capibara::kernels
