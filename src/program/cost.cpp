// Counting the operations of a program.
#include <capibara/analysis.h>
#include <capibara/primitive.h>

#include <algorithm>
#include <string_view>

namespace capibara {

namespace {

bool is_transcendental(std::string_view name) {
  static constexpr std::string_view names[] = {"acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "digamma", "erf",
                                               "erfc", "erf_inv", "exp", "exp2", "expm1", "lgamma", "log", "log1p", "logistic", "pow", "rsqrt", "sin",
                                               "sinh", "sqrt", "tan", "tanh"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

double bytes_of(const ArrayType& type) { return static_cast<double>(type.size()) * static_cast<double>(storage_size(type.dtype)); }

void add(ProgramCost& to, const ProgramCost& more, double times) {
  to.flops += times * more.flops;
  to.transcendentals += times * more.transcendentals;
  to.bytes_accessed += times * more.bytes_accessed;
}

// The costliest of several branches, or the sum of what is called.
bool add_nested(const Equation& equation, ProgramCost& cost) {
  bool found = false;
  const double times = equation.primitive.is("scan") ? static_cast<double>(equation.attrs.integer("length")) : 1;
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

// Regions of these are a combination of two scalars; their records count them.
bool holds_scalars_only(const Primitive& primitive) {
  for (std::string_view name : {"reduce", "reduce_window", "scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "sort"}) {
    if (primitive.is(name)) return true;
  }
  return false;
}

}  // namespace

ProgramCost count_cost(const Program& program) {
  ProgramCost cost;
  for (const Equation& equation : program.equations()) {
    if (!holds_scalars_only(equation.primitive) && add_nested(equation, cost)) continue;
    Types inputs;
    for (Atom input : equation.inputs) {
      inputs.push_back(program.type(input));
      cost.bytes_accessed += bytes_of(inputs.back());
    }
    for (Var output : equation.outputs) {
      if (!output.dropped()) cost.bytes_accessed += bytes_of(program.type(output));
    }
    if (is_transcendental(equation.primitive.name())) cost.transcendentals += static_cast<double>(inputs[0].size());
    else if (equation.primitive->flops) cost.flops += equation.primitive->flops(inputs, equation.attrs);
  }
  return cost;
}

}  // namespace capibara
