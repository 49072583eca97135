// Passes over nested programs, and the test for equations that may be repeated.
#include "compiler/optimise/rewrite.h"

#include <utility>

namespace capibara::passes {

Program NestedPass::operator()(const Program& program) {
  if (!std::exchange(begun_, true)) return body_(program, *this);  // the outermost is in none of its own equations
  auto it = done_.find(program);
  if (it != done_.end()) return it->second;
  Program result = body_(program, *this);
  return done_.try_emplace(program, std::move(result)).first->second;
}

bool repeatable(const Program& program, const Equation& equation) {
  if (equation.effects.keeps_equation()) return false;
  if (!equation.primitive->traits.repeatable || equation.primitive->evaluate) return false;
  for (Atom input : equation.inputs) {
    if (program.type(input).ref) return false;
  }
  for (Var output : equation.outputs) {
    if (!output.dropped() && program.type(output).ref) return false;
  }
  return true;
}

}  // namespace capibara::passes
