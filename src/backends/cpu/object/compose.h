// For objects: operations that kernels compute in a process, composed of operations with generated code.
#pragma once

#include <capibara/primitive.h>

namespace capibara::cpu {

// The program that an object is compiled from: the given one, optimised, with compositions in place of operations that
// only kernels compute, where there are any.
Program optimised_for_object(const Program& program);

namespace objects {

// ---- one composition per operation ----
Arrays convolution(std::span<const Array> inputs, const Attrs& attrs);
Arrays sort_general(std::span<const Array> inputs, const Attrs& attrs);
Arrays top_k(std::span<const Array> inputs, const Attrs& attrs);

}  // namespace objects

}  // namespace capibara::cpu
