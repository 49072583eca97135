// Attention that a program writes out: softmax(scale query key^T + bias) value, and its reverse derivative.
#pragma once

#include "kernels/attention/labelled.h"

namespace capibara::kernels {

// Which keys a query sees by their positions: those up to `right` after it and from `left` before it; and by arrays of
// booleans that all must hold.
struct Seen {
  std::optional<int64_t> left, right;
  std::vector<Labelled> masks;
  bool by_position() const { return left || right; }
};

// One operation on the logits between the first matmul and the softmax.
struct LogitStep {
  enum Kind { convert, multiply, divide, add } kind;
  DType dtype;           // of its result
  double number = 1;     // that logits are multiplied or divided by
  std::size_t bias = 0;  // that is added
};

struct PlainAttention {
  Shape sizes;               // of the axes of the logits
  Axes batch, heads;         // axes that keys have as well; axes of queries only, but for the last one
  int query = -1, key = -1;  // the axes of the softmax's rows and of its elements
  Labelled queries, keys, values;
  std::vector<Labelled> biases;
  double scale = 1;
  DType product{};                    // the type of the first matmul's result
  std::vector<LogitStep> steps;       // in the order in which they run
  std::optional<Labelled> condition;  // where it is false, logits are `hidden`
  double hidden = 0;
  DType dtype{};
  Atom exponentials, probabilities;  // probabilities: as the second matmul reads them
  Labelled totals;                   // the row sums
  int result = -1;  // the second matmul; -1 where nothing reads it, in a program of the derivative alone
  Axes result_axes;
  std::vector<int> inner;  // equations whose results are needed for nothing else

  int64_t size(std::span<const int> axes) const;
  Axes row_axes() const;  // of the logits but for the keys, sorted
};
// What the quotient of a softmax belongs to; nothing where that is no attention.
std::optional<PlainAttention> read_attention(const Equations& equations, int quotient);
Seen read_seen(const Equations& equations, const PlainAttention& attention);

// Of which operand of the attention a matmul or a sum is the cotangent.
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
// The reverse derivative; nothing where the program has none, or has another form of it.
std::optional<PlainGradient> read_gradient(const Equations& equations, const PlainAttention& attention);

}  // namespace capibara::kernels
