// Shared by the passes: rewriting each nested program once, and which equations may move.
#pragma once

#include "core/array/byte_count.h"
#include "program/ir/copy.h"
#include "program/ir/nested.h"

#include <functional>
#include <unordered_map>

namespace capibara::passes {

struct ProgramHash {
  std::size_t operator()(const Program& program) const { return program.hash(); }
};
template <class Value>
using ProgramMap = std::unordered_map<Program, Value, ProgramHash>;

// Applies a pass to a program and to those inside it. Equal programs are rewritten once and become one object.
class NestedPass {
 public:
  using Body = std::function<Program(const Program&, NestedPass&)>;
  explicit NestedPass(Body body) : body_(std::move(body)) {}

  Program operator()(const Program& program);
  Attrs operator()(const Attrs& attrs) {
    return rewrite_programs(attrs, [this](const Program& program) { return (*this)(program); });
  }

 private:
  Body body_;
  bool begun_ = false;
  ProgramMap<Program> done_;
};

// True if a pass changes a program: in an equation that `concerns` it, or in nested programs. Copying equations costs
// more than this test.
template <class F>
bool changes(const Program& program, NestedPass& nested, F&& concerns) {
  for (const Equation& equation : program.equations()) {
    if (concerns(equation)) return true;
    if (holds_programs(equation.attrs) && !same_object(nested(equation.attrs), equation.attrs)) return true;
  }
  return false;
}

// Pure and deterministic: such an equation may be merged with its duplicates, folded, or moved out of a loop.
bool repeatable(const Program& program, const Equation& equation);

// Constants above this size are never folded or compared by content.
inline constexpr std::size_t large_constant_bytes = 4096;

}  // namespace capibara::passes
