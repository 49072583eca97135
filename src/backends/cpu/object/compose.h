// Operations that kernels compute in a process, composed of what generated code holds: for objects.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// The program that an object is made of: what the optimiser makes of the given one, without operations that only
// kernels compute, as far as there are compositions.
Program optimised_for_object(const Program& program);

namespace objects {

// ---- one composition per operation ----
Arrays convolution(std::span<const Array> inputs, const Attrs& attrs);
Arrays sort_general(std::span<const Array> inputs, const Attrs& attrs);
Arrays top_k(std::span<const Array> inputs, const Attrs& attrs);

}  // namespace objects

}  // namespace capibara::cpu
