// User primitives in compiled programs: by their lowering, or as a callback to their implementation.
#pragma once

#include <capibara/primitive.h>

#include <atomic>

#include "bindings.h"

namespace capibara::python {

Types types_of(std::span<const Array> inputs);

// Raises unless the lowering's results have the types of the abstract evaluation, with which programs were traced.
void check_lowered(const std::string& name, const Arrays& outputs, const Types& promised);

// A primitive that programs can only call back, and the reason.
struct Uncompiled {
  const std::string& name;
  std::atomic<bool>& warned;
  std::string reason;
};
// Calls the implementation as a callback; warns once.
Arrays call_from_program(const Uncompiled& primitive, const TypeResult& promised, const EvaluateRule& evaluate,
                         std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara::python
