// Attention written out in a program: softmax(scale query key^T + bias) value, and its reverse derivative.
#pragma once

#include "kernels/attention/labelled.h"

namespace capibara::kernels {

// The keys visible to a query: by position, from `left` before it to `right` after it; and by boolean arrays, all of
// which must be true.
struct Seen {
  std::optional<int64_t> left, right;
  std::vector<Labelled> masks;
  bool by_position() const { return left || right; }
};

// One operation on the logits between the first matmul and the softmax.
struct LogitStep {
  enum Kind { convert, multiply, divide, add } kind;
  DType dtype;           // of its result
  double number = 1;     // the factor or divisor of the logits
  std::size_t bias = 0;  // index of the bias to add
};

struct PlainAttention {
  Shape sizes;               // of the axes of the logits
  Axes batch, heads;         // axes shared with the keys; axes of queries only, except the last
  int query = -1, key = -1;  // the axes of the softmax's rows and of its elements
  Labelled queries, keys, values;
  std::vector<Labelled> biases;
  double scale = 1;
  DType product{};                    // the type of the first matmul's result
  std::vector<LogitStep> steps;       // in execution order
  std::optional<Labelled> condition;  // logits are `hidden` where it is false
  double hidden = 0;
  DType dtype{};
  Atom exponentials, probabilities;  // probabilities: as the second matmul reads them
  Labelled totals;                   // the row sums
  int result = -1;                   // the second matmul; -1 if it is unused, in a program of the derivative alone
  Axes result_axes;
  std::vector<int> inner;  // equations whose results have no other uses

  int64_t size(std::span<const int> axes) const;
  Axes row_axes() const;  // of the logits without the keys, sorted
};
// The attention that the quotient of a softmax belongs to; nullopt if it is not attention.
std::optional<PlainAttention> read_attention(const Equations& equations, int quotient);
Seen read_seen(const Equations& equations, const PlainAttention& attention);

// A matmul or sum that is the cotangent of an operand of the attention.
struct PlainCotangent {
  enum Of { queries, keys, values, bias } of;
  std::size_t bias_number;
  int equation;
  Axes axes;
};
struct PlainGradient {
  Labelled cotangent, values;
  DType product{};  // the type of cotangent values^T
  std::vector<PlainCotangent> results;
  std::vector<int> inner;
};
// The reverse derivative; nullopt if the program has none, or has it in another form.
std::optional<PlainGradient> read_gradient(const Equations& equations, const PlainAttention& attention);

}  // namespace capibara::kernels
