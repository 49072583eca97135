// Sums what the equations of a program cost by their sizes, with rough figures for each kind.
#include "backends/cpu/cost.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace capibara::cpu {

namespace {

constexpr double unknown_trips = 1e9;
// Nanoseconds, measured on a core of 2.6 GHz.
constexpr double per_flop = 0.05, per_element = 0.3, per_region_equation = 30;

struct ElementCost {
  std::string_view prefix;
  double nanoseconds;  // per element; of matrices per element and row
};
constexpr ElementCost element_costs[] = {{"sort", 30},          {"top_k", 5},           {"scatter", 3},         {"gather", 3},
                                         {"cum", 3},            {"reduce_window", 10},  {"select_and_", 10},    {"fft", 30},
                                         {"random_bits", 3},    {"threefry", 3},        {"rng_", 3},            {"random_gamma", 300},
                                         {"igamma", 200},       {"regularized_", 300},  {"bessel", 50},         {"conv_general", 3}};
constexpr ElementCost matrix_costs[] = {{"cholesky", 1}, {"eig", 10},        {"svd", 10}, {"qr", 2},         {"lu", 1}, {"geqrf", 2}, {"geqp3", 2},
                                        {"schur", 10},   {"hessenberg", 10}, {"ormqr", 2}, {"householder", 2}, {"triangular_solve", 1}};

double cost_in(std::span<const ElementCost> costs, std::string_view name) {
  for (const ElementCost& one : costs) {
    if (name.starts_with(one.prefix)) return one.nanoseconds;
  }
  return 0;
}

// Programs that run as a whole; those of other primitives combine elements and run once for each.
bool runs_programs(std::string_view name) {
  for (std::string_view one : {"jit", "closed_call", "core_call", "cond", "scan", "while", "remat", "checkpoint", "custom_", "linear_solve"}) {
    if (name.starts_with(one)) return true;
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

// `elements`: of the largest operand or result.
double nanoseconds_of(const Primitive& primitive, const Types& inputs, const Attrs& attrs, double elements) {
  const std::string& name = primitive.name();
  if (name == "while") return unknown_trips;
  double nested = 0, equations = 0;
  for (const Program& held : held_programs(attrs)) {
    nested = std::max(nested, sum_of(held));
    equations += static_cast<double>(held.equations().size());
  }
  if (name == "scan") return nested * static_cast<double>(attrs.integer("length"));
  double own = elements * std::max(per_element, cost_in(element_costs, name));
  if (const double matrix = cost_in(matrix_costs, name); matrix > 0 && !inputs.empty() && inputs[0].rank() > 0) {
    own = elements * matrix * static_cast<double>(inputs[0].shape.back());
  }
  if (equations > 0 && !runs_programs(name)) own += elements * per_region_equation * equations;
  const double work = primitive->flops ? per_flop * primitive->flops(inputs, attrs) : 0;
  return nested + std::max(own, work);
}

double nanoseconds_of(const Program& program, const Equation& equation) {
  double elements = 0;
  Types types;
  for (Atom input : equation.inputs) {
    types.push_back(program.type(input));
    elements = std::max(elements, static_cast<double>(types.back().size()));
  }
  for (Var output : equation.outputs) {
    if (!output.dropped()) elements = std::max(elements, static_cast<double>(program.type(output).size()));
  }
  return nanoseconds_of(equation.primitive, types, equation.attrs, elements);
}

}  // namespace

double estimated_nanoseconds(const Program& program) { return sum_of(program); }

double estimated_nanoseconds(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  constexpr double few = 1024;
  double elements = 0;
  for (const Array& input : inputs) elements = std::max(elements, static_cast<double>(input.size()));
  if (const Attr* shape = attrs.find("shape")) {  // of what is made of nothing: iota, random bits, broadcast scalars
    if (const auto* sizes = shape->get_if<Ints>()) {
      double made = 1;
      for (int64_t size : *sizes) made *= static_cast<double>(size);
      elements = std::max(elements, made);
    }
  }
  if (elements < few) return 0;
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  return nanoseconds_of(primitive, types, attrs, elements);
}

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
