// unshare: gives each reader its own copy of values that are free to recompute, so that none is ever stored.
#include "backends/cpu/rewrites/unshare.h"
#include "backends/cpu/kernels/exchange.h"
#include "program/ir/handles.h"

#include <algorithm>

namespace capibara::cpu {

namespace {

// Index arithmetic alone, on an operand smaller than the result, or on none.
bool is_free(const Program& program, const Equation& equation) {
  if (equation.outputs.size() != 1 || equation.outputs[0].dropped()) return false;
  if (equation.primitive == prim::iota()) return true;
  if (equation.primitive != prim::broadcast_in_dim()) return false;
  return program.type(equation.outputs[0]).size() > program.type(equation.inputs[0]).size();
}

bool holds_programs(const Equation& equation) {
  for (const auto& [name, attr] : equation.attrs.entries()) {
    if (attr.get_if<std::shared_ptr<const Program>>() || attr.get_if<std::shared_ptr<const Attr::List>>()) return true;
  }
  return false;
}

// An exchange reads its operand until it has been waited for: start and wait refer to the same memory.
bool is_exchange(const Equation& equation) {
  return equation.primitive == exchange_start() || equation.primitive == exchange_wait();
}

}  // namespace

Program unshare(const Program& program) {
  const std::vector<Equation>& equations = program.equations();
  std::vector<int> definition(static_cast<std::size_t>(program.var_count()), -1);
  bool any = false;
  for (std::size_t e = 0; e < equations.size(); ++e) {
    if (!is_free(program, equations[e])) continue;
    definition[static_cast<std::size_t>(equations[e].outputs[0].id)] = static_cast<int>(e);
    any = true;
  }
  if (!any) return program;

  Program::Body body = program.body();
  body.equations.clear();
  std::vector<bool> taken(definition.size(), false);  // the first reader keeps the original variable
  for (const Equation& original : equations) {
    Equation equation = original;
    for (Atom& input : equation.inputs) {
      if (input.is_literal() || holds_programs(equation) || is_exchange(equation)) continue;
      const std::size_t id = static_cast<std::size_t>(input.code);
      if (definition[id] < 0) continue;
      if (!taken[id]) {
        taken[id] = true;
        continue;
      }
      Equation copy = equations[static_cast<std::size_t>(definition[id])];
      body.var_types.push_back(program.type(copy.outputs[0]));
      copy.outputs[0] = Var{static_cast<int32_t>(body.var_types.size()) - 1};
      input = copy.outputs[0];
      body.equations.push_back(std::move(copy));
    }
    body.equations.push_back(std::move(equation));
  }
  return Program(std::move(body));
}

}  // namespace capibara::cpu
