// Running one operation now: the backend functions used by evaluation and constant folding, defined in src/assembly.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

using Evaluate = Arrays(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

// On the backend that committed operands require, else on the default one; results of committed operands are committed.
extern Evaluate* const evaluate;
// On the host by plain loops, whatever the default backend is.
extern Evaluate* const evaluate_plainly;

}  // namespace capibara
