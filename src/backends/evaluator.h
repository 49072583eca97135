// Runs one operation immediately, for the rooms below the backends: chooses a backend and places the results.
#pragma once

#include "program/trace/evaluator.h"

namespace capibara {

Arrays run_now(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);
Arrays run_plainly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara
