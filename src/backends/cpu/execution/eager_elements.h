// Elementwise operations outside of jit: one compiled function per operation and types, which runs at every shape.
#pragma once

#include <capibara/primitive.h>

#include <optional>

namespace capibara::cpu {

// Nothing where there is no such function: another kind of operation, operands that are stretched, no compiler.
std::optional<Array> run_elements(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara::cpu
