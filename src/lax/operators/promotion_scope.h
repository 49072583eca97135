// Which promotions follow the user's settings jax_numpy_dtype_promotion and jax_numpy_rank_promotion.
#pragma once

#include <capibara/array.h>

#include "core/array/promotion.h"

namespace capibara {

PromotionMode promotion_mode();  // of dtypes, here and now

// While a function of the library runs, the settings concern the operands that the user gave it: their promotion is the
// first one. What the function computes after that is its own arithmetic, and promotes by the standard rules.
class PromotionScope {
 public:
  enum Rule { all, first, none };  // which promotions follow the settings
  explicit PromotionScope(Rule rule);
  ~PromotionScope();
  PromotionScope(const PromotionScope&) = delete;
  PromotionScope& operator=(const PromotionScope&) = delete;

 private:
  Rule dtypes_, ranks_;  // of the scope around
};

// Whether two operands have one dtype and ranks that need no change: they are what promotion would return, and count as
// promoted where they are.
bool are_promoted(const Array& a, const Array& b);

}  // namespace capibara
