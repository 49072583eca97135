// Sums what the equations of a program cost by their sizes, with rough figures for each kind.
#include "backends/cpu/cost.h"

#include <algorithm>
#include <string_view>

namespace capibara::cpu {

namespace {

constexpr double unknown_turns = 1e9;
// Nanoseconds, measured on a core of 2.6 GHz.
constexpr double per_flop = 0.05, per_element = 0.3, per_placed_element = 3;

bool places_elements(std::string_view name) {
  for (std::string_view one : {"sort", "top_k", "scatter", "gather", "cum", "reduce_window", "select_and_scatter", "fft", "random_bits", "threefry"}) {
    if (name.substr(0, one.size()) == one) return true;
  }
  return false;
}

std::vector<Program> held_programs(const Attrs& attrs) {
  std::vector<Program> programs;
  auto add = [&programs](const Attr& attr) {
    if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) programs.push_back(**program);
  };
  for (const auto& [name, attr] : attrs.entries()) {
    add(attr);
    const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
    if (!list) continue;
    for (const Attr& item : **list) add(item);
  }
  return programs;
}

double nanoseconds_of(const Program& program, const Equation& equation);

double sum_of(const Program& program) {
  double sum = 0;
  for (const Equation& equation : program.equations()) sum += nanoseconds_of(program, equation);
  return sum;
}

double nanoseconds_of(const Program& program, const Equation& equation) {
  const std::string& name = equation.primitive.name();
  double nested = 0;
  for (const Program& held : held_programs(equation.attrs)) nested = std::max(nested, sum_of(held));
  if (name == "while") return unknown_turns;
  if (name == "scan") return nested * static_cast<double>(equation.attrs.integer("length"));
  double elements = 0;
  Types types;
  for (Atom input : equation.inputs) {
    types.push_back(program.type(input));
    elements = std::max(elements, static_cast<double>(types.back().size()));
  }
  for (Var output : equation.outputs) {
    if (!output.dropped()) elements = std::max(elements, static_cast<double>(program.type(output).size()));
  }
  const double own = elements * (places_elements(name) ? per_placed_element : per_element);
  const double work = equation.primitive->flops ? per_flop * equation.primitive->flops(types, equation.attrs) : 0;
  return nested + std::max(own, work);
}

}  // namespace

double estimated_nanoseconds(const Program& program) { return sum_of(program); }

bool may_run_later(const Program& program) {
  if (program.effects().flags != 0) return false;
  for (const Equation& equation : program.equations()) {
    if (equation.primitive->evaluate || equation.effects.flags != 0) return false;
    for (const Program& held : held_programs(equation.attrs)) {
      if (!may_run_later(held)) return false;
    }
  }
  return true;
}

}  // namespace capibara::cpu
