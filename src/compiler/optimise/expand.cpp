// expand: replaces an operation that a user defined with a lowering of its own by that lowering.
//
//   b = mine a        if its lowering is x -> x * 2
// becomes
//   b = mul a 2.0
// Its evaluation rule is code of the host language, for calls outside of programs: inside a loop it would run in every
// iteration. All nested programs are expanded as well, before any of them is batched into the lanes of a shard_map,
// since rules for vmap must not see the devices of a mesh.
#include "compiler/optimise/passes.h"
#include "program/ir/nested.h"

#include <algorithm>
#include <unordered_set>

namespace capibara::passes {

namespace {

// Programs are shared: each is visited once.
bool holds_expandable(const Program& program, std::unordered_set<const void*>& seen) {
  if (!seen.insert(program.identity()).second) return false;
  return std::any_of(program.equations().begin(), program.equations().end(), [&](const Equation& equation) {
    return is_expandable(equation.primitive) ||
           any_program(equation.attrs, [&](const Program& inner) { return holds_expandable(inner, seen); });
  });
}

}  // namespace

bool is_expandable(const Primitive& primitive) { return primitive->evaluate && primitive->lower; }

Program expand(const Program& program) {
  return compose(program, [](const Program&, const Equation& equation) { return !is_expandable(equation.primitive); });
}

Program expanded(const Program& program) {
  std::unordered_set<const void*> seen;
  return holds_expandable(program, seen) ? expand(strengthen(program)) : program;
}

}  // namespace capibara::passes
