// The conditions under which fused attention stands for the equations that a program has.
#pragma once

#include "kernels/attention/plain.h"

namespace capibara::kernels {

// What would be replaced, and what the replacement reads.
struct AttentionMatch {
  const PlainAttention& attention;
  const std::optional<PlainGradient>& gradient;
  std::vector<int> inner, last;  // equations that disappear; those whose results are given
  std::vector<Atom> operands;    // queries, keys, values, what hides keys, biases
};

// Whether all of them hold. What is found in a program where one does not is left alone.
bool is_proven(const Equations& equations, const AttentionMatch& match);

// Hidden logits that are numbers are at least this far below 0, and logits that are seen nearer to 0 than `seen_limit`:
// the exponentials of hidden ones are 0, whatever the others are.
inline constexpr double hidden_limit = -1e30, seen_limit = 1e29;

}  // namespace capibara::kernels
