// Sums over mesh axes that the types of values leave to be taken.
#pragma once

#include <capibara/collective.h>

namespace capibara::jax::lax {

// Whether the sum of x over these axes is still to be taken; raises ValueError where that is so for some of them alone.
bool is_unreduced(const char* operation, const Array& x, const AxisNames& axes);

}  // namespace capibara::jax::lax
