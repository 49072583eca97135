// Operations that kernels compute in a process, as functions in loop form: for objects, which have no kernels.
#pragma once

#include <capibara/primitive.h>

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/elements/element.h"

namespace capibara::cpu {

// The parameters are the inputs, the outputs, the tables, and then scratch memory.
struct Routine {
  Function function;
  std::vector<Array> tables = {};  // constant tables
};

// Empty if there is no such function for these types. `in_place`: the first input is already in the output's memory
// and is not a parameter.
std::optional<Routine> write_routine(const Primitive& primitive, const Types& inputs, const Types& outputs,
                                     const Attrs& attrs, bool in_place);

namespace routines {

Function dot_general(const Types& inputs, const Types& outputs, const Attrs& attrs);
Function gather(const Types& inputs, const Types& outputs, const Attrs& attrs);
std::optional<Function> scatter(const Types& inputs, const Types& outputs, const Attrs& attrs, bool in_place);
std::optional<Function> sort(const Types& inputs, const Program& comparator, int64_t dimension);
Routine fft(const Types& inputs, const Types& outputs, const Attrs& attrs);

// Nested loops; the innermost may run in lanes.
void nest(Builder& builder, std::span<const int64_t> extents, bool lanes,
          const std::function<void(std::span<const Value>)>& body);
// Strides of a row-major array, in elements.
Ints strides_of(const Shape& shape);

}  // namespace routines

}  // namespace capibara::cpu
