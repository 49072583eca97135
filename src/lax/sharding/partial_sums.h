// Unreduced values: sums over mesh axes that are still to be taken.
#pragma once

#include <capibara/collective.h>

namespace capibara::jax::lax {

// True if x is unreduced over these axes; raises ValueError if it is so over only some of them.
bool is_unreduced(const char* operation, const Array& x, const AxisNames& axes);

}  // namespace capibara::jax::lax
