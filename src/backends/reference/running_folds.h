// The steps of running folds along an axis, as in XLA's windows: for cumulative operations of all backends.
#pragma once

#include <cmath>
#include <limits>

#include "backends/reference/regions.h"

namespace capibara::reference {

// A step of a running fold. Comparisons would preserve the bits of denormals, which must count as zeros.
template <Monoid M, class C>
C folded(const C& running, const C& element) {
  const C result = combine<M>(running, element);
  if constexpr (std::is_floating_point_v<C> && (M == Monoid::max || M == Monoid::min)) {
    if (std::abs(result) < std::numeric_limits<C>::min()) return std::copysign(C(0), result);
  }
  return result;
}
// The first value of a running fold of several elements: XLA combines the first element with the identity, so -0
// becomes 0 in sums.
template <Monoid M, class C>
C first_of_fold(const C& x) {
  if constexpr (std::is_floating_point_v<C>) {
    if constexpr (M == Monoid::add) return x + C(0);
    if constexpr (M == Monoid::max || M == Monoid::min) return folded<M>(x, x);
  } else if constexpr (is_complex_number<C>) {
    if constexpr (M == Monoid::add) return x + C(0);
    if constexpr (M == Monoid::mul) return combine<M>(C(1), x);
  }
  return x;
}

}  // namespace capibara::reference
