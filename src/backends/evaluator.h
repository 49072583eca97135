// Running one operation now, for the rooms below the backends: the choice of a backend, and where results are placed.
#pragma once

#include "program/trace/evaluator.h"

namespace capibara {

Arrays run_now(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);
Arrays run_plainly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara
