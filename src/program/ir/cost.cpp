// Counting the operations of a program.
#include <capibara/analysis.h>
#include <capibara/primitive.h>

#include <algorithm>

#include "program/ir/cost.h"

namespace capibara {

namespace {

bool is_transcendental(const Traits& traits) {
  return traits.elementwise != Elementwise::no && (traits.cost == Cost::root || traits.cost == Cost::function);
}

double bytes_of(const ArrayType& type) {
  return static_cast<double>(type.size()) * static_cast<double>(storage_size(type.dtype));
}

void add(ProgramCost& to, const ProgramCost& more, double times) {
  to.flops += times * more.flops;
  to.transcendentals += times * more.transcendentals;
  to.bytes_accessed += times * more.bytes_accessed;
}

// The costliest of several branches, or the sum of what is called.
bool add_nested(const Equation& equation, ProgramCost& cost) {
  bool found = false;
  const double times =
      equation.primitive->traits.control == Control::scan ? static_cast<double>(equation.attrs.integer("length")) : 1;
  for (const auto& [name, attr] : equation.attrs.entries()) {
    if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) {
      add(cost, count_cost(**program), times);
      found = true;
    }
    const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
    if (!list) continue;
    ProgramCost most;
    for (const Attr& one : **list) {
      const auto* program = one.get_if<std::shared_ptr<const Program>>();
      if (!program) continue;
      const ProgramCost own = count_cost(**program);
      if (own.flops + own.transcendentals >= most.flops + most.transcendentals) most = own;
      found = true;
    }
    add(cost, most, times);
  }
  return found;
}

}  // namespace

ProgramCost equation_cost(const Program& program, const Equation& equation) {
  ProgramCost cost;
  if (!equation.primitive->traits.region && add_nested(equation, cost)) return cost;
  Types inputs;
  for (Atom input : equation.inputs) {
    inputs.push_back(program.type(input));
    cost.bytes_accessed += bytes_of(inputs.back());
  }
  for (Var output : equation.outputs) {
    if (!output.dropped()) cost.bytes_accessed += bytes_of(program.type(output));
  }
  if (is_transcendental(equation.primitive->traits))
    cost.transcendentals += static_cast<double>(inputs[0].size());
  else if (equation.primitive->flops)
    cost.flops += equation.primitive->flops(inputs, equation.attrs);
  return cost;
}

ProgramCost count_cost(const Program& program) {
  ProgramCost cost;
  for (const Equation& equation : program.equations()) add(cost, equation_cost(program, equation), 1);
  return cost;
}

}  // namespace capibara
