// Elementwise operations outside of jit: one compiled function per operation and types, which runs at every shape.
#pragma once

#include <capibara/primitive.h>

#include <memory>

namespace capibara::cpu {

class ElementFunction;

// The function of an operation, and its result type for the given operand types. The function is null if there is none:
// not elementwise, operands that need broadcasting, or no compiler.
struct ElementCall {
  std::shared_ptr<const ElementFunction> function;
  ArrayType result;
};

ElementCall find_elements(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);
Array run_elements(const ElementCall& call, std::span<const Array> inputs);

}  // namespace capibara::cpu
