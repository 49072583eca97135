// The fused form of attention written out in a program: the same function of the same arrays, up to rounding.
#pragma once

#include <limits>

#include "kernels/attention/definition.h"
#include "kernels/fuse.h"

namespace capibara::kernels {

class FusedForm {
 public:
  FusedForm(const Equations& equations, const PlainAttention& plain, Special special);

  static bool is_call(const Equation& equation);  // to fused attention or its gradient
  // The atoms that it reads: queries, keys, values, then masks and biases.
  std::vector<Atom> operands() const;

  // Operands -> the output by heads, the log-sum-exp, a flag for ordinary calls; and the result of the second
  // matmul, of this shape, if any.
  Arrays forward(std::span<const Array> in, const std::optional<Shape>& result) const;
  // Operands, the additional results of forward, the cotangent -> the result of each of the matmuls and sums.
  Arrays gradient(std::span<const Array> in, const PlainGradient& gradient, const Types& results) const;

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Operands : DefinedOperands {
    Arrays extras;  // the mask or the bias
    Array seen;     // the condition, excluding position limits if there is no bias
    bool has_mask = false, has_bias = false;
  };

  Operands operands_of(std::span<const Array> in) const;
  Attrs attrs(const Operands& operands) const;
  bool may_hide_all() const;
  bool skips() const { return plain_.biases.empty() && seen_.by_position(); }
  Arrays fused_gradient(const Operands& operands, std::span<const Array> saved, const Array& cotangent) const;
  Array spread(const Array& x, const Axes& axes) const;
  Array mask_of(std::span<const Array> masks) const;
  Array bias_of(std::span<const Array> biases, const Array& seen) const;
  Array positions_seen() const;
  Array by_heads(const Array& x, const Axes& axes, const Axes& order) const;
  Array from_heads(const Array& x, const Axes& order, const Axes& axes, const Shape& shape) const;
  Array bias_cotangent(const Array& gradients, const Axes& axes, const Shape& shape) const;
  Array with_hidden_rows(const Array& output, const Array& lse, const Array& value) const;
  void add_hidden_rows(Arrays& gradients, const Array& cotangent, const Array& lse) const;
  Array sum_by_group(const Array& x) const;

  const PlainAttention& plain_;
  const Special special_;
  Seen seen_;
  Axes leading_, heads_;  // batches, and groups with their heads: the first two axes of fused attention
  Axes query_order_, key_order_, logit_order_;
};

}  // namespace capibara::kernels
