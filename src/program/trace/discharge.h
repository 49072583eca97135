// Discharge: refs become values, reads and writes of them data flow, so that backends and program texts need no refs.
#pragma once

#include "program/ir/build.h"

namespace capibara {

bool holds_refs(const Program& program);  // among its variables, or in a nested program
bool holds_refs(const Attrs& attrs);
// True if all of them can become values: a user's rule that waits for its cotangents may hold a ref itself.
bool can_discharge(const Attrs& attrs);

// A program whose ref inputs are values. Its outputs are those of the original, then the last value of each written
// ref.
struct Discharged {
  Program program;
  std::vector<std::size_t> written;  // inputs
};
Discharged discharge(const Program& program);

// A call, loop or branch on values instead of refs.
struct DischargedCall {
  Primitive primitive;
  Attrs attrs;
  std::vector<std::size_t> operands;  // inputs of the original, a ref replaced by its value
  std::vector<std::size_t> outputs;   // positions of the original's outputs among the results
  std::vector<std::pair<std::size_t, std::size_t>>
      written;  // a ref among the inputs, and the result that is its final value
};
// `same_as` has, for each input, the first input that is the same ref; its own position otherwise.
DischargedCall discharge_call(const Primitive& primitive, std::span<const ArrayType> types, const Attrs& attrs,
                              std::span<const std::size_t> same_as);

// Binds a call, loop or branch on values under the current trace: reads its refs before and writes them afterwards.
Arrays bind_on_values(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara
