// The conditions under which fused attention may replace a program's equations.
#pragma once

#include "kernels/attention/plain.h"

namespace capibara::kernels {

// The equations to replace, and the operands of the replacement.
struct AttentionMatch {
  const PlainAttention& attention;
  const std::optional<PlainGradient>& gradient;
  std::vector<int> inner, last;  // equations that disappear; those whose results are provided
  std::vector<Atom> operands;    // queries, keys, values, masks, biases
};

// True if all conditions hold. A match for which one does not is left unchanged.
bool is_proven(const Equations& equations, const AttentionMatch& match);

// Finite hidden logits are at most `hidden_limit`, and visible ones closer to 0 than `seen_limit`: the exponentials of
// hidden logits are 0, whatever the others are.
inline constexpr double hidden_limit = -1e30, seen_limit = 1e29;

}  // namespace capibara::kernels
