// What stands for a user's primitive in compiled programs: its lowering, or a call of its implementation.
#pragma once

#include <capibara/primitive.h>

#include <atomic>

#include "bindings.h"

namespace capibara::python {

Types types_of(std::span<const Array> inputs);

// The lowering stands for the primitive in programs that were traced with the types of its abstract evaluation.
void check_lowered(const std::string& name, const Arrays& outputs, const Types& promised);

// A primitive that programs can only call, and why.
struct Uncompiled {
  const std::string& name;
  std::atomic<bool>& warned;
  std::string reason;
};
// Its implementation as a callback, which is said once.
Arrays call_from_program(const Uncompiled& primitive, const TypeResult& promised, const EvaluateRule& evaluate,
                         std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara::python
