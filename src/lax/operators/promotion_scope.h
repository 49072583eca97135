// The promotions that follow the user's settings jax_numpy_dtype_promotion and jax_numpy_rank_promotion.
#pragma once

#include <capibara/array.h>

#include "core/array/promotion.h"

namespace capibara {

PromotionMode promotion_mode();  // of dtypes, here and now

// While a function of the library runs, the settings apply to the operands that the user passed: their promotion is the
// first one. Later computations are the function's own arithmetic, and promote by the standard rules.
class PromotionScope {
 public:
  enum Rule { all, first, none };  // which promotions follow the settings
  explicit PromotionScope(Rule rule);
  ~PromotionScope();
  PromotionScope(const PromotionScope&) = delete;
  PromotionScope& operator=(const PromotionScope&) = delete;

 private:
  Rule dtypes_, ranks_;  // of the enclosing scope
};

// True if two operands have one dtype and ranks that need no change: promotion would return them unchanged, and they
// count as promoted.
bool are_promoted(const Array& a, const Array& b);

}  // namespace capibara
