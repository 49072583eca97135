// Decides if a call of fused attention is ordinary: if, for its values, it agrees with the definition.
#pragma once

#include "kernels/attention/definition.h"

namespace capibara::kernels {

class OrdinaryAttention {
 public:
  // `skips`: keys that no query sees may be left unread; `may_hide_all`: a query may see no key.
  OrdinaryAttention(const PlainAttention& plain, const DefinedOperands& operands, bool skips, bool may_hide_all)
      : plain_(plain), operands_(operands), skips_(skips), may_hide_all_(may_hide_all) {}

  // A boolean, derived from the results of the fused operation, mostly from the log-sum-exp of each row.
  Array forward(const Array& output, const Array& lse) const;
  // The same for the gradient; `forward` is the result for the forward pass.
  Array backward(const Array& forward, const Array& cotangent, DType product) const;

 private:
  bool has_narrow_logits(DType dtype) const;
  Array rows(const Array& lse) const;
  Array values(const Array& output) const;
  Array logits_stay_small() const;

  const PlainAttention& plain_;
  const DefinedOperands& operands_;
  const bool skips_, may_hide_all_;
};

}  // namespace capibara::kernels
