// Running one operation now: what evaluation and constant folding ask of the backends (assembly/evaluator.cpp).
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// On the backend that committed operands demand, else on the default one; results of committed operands are committed.
Arrays evaluate(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);
// On the host by plain loops, whatever the default backend is.
Arrays evaluate_plainly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara
