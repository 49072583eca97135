// Estimates the cost of a program from the sizes in its equations, with rough figures for each kind.
#include "backends/cpu/execution/cost.h"

#include <algorithm>
#include <span>

#include "program/ir/nested.h"

namespace capibara::cpu {

namespace {

constexpr double unknown_trips = 1e9;
// Nanoseconds, measured on a core of 2.6 GHz.
constexpr double per_flop = 0.05, per_element = 0.3, per_region_equation = 30;

double nanoseconds_of(const Program& program, const Equation& equation);

double sum_of(const Program& program) {
  double sum = 0;
  for (const Equation& equation : program.equations()) sum += nanoseconds_of(program, equation);
  return sum;
}

// `elements`: of the largest operand or result.
double nanoseconds_of(const Primitive& primitive, const Types& inputs, const Attrs& attrs, double elements) {
  const Traits& traits = primitive->traits;
  if (traits.control == Control::while_loop) return unknown_trips;
  double nested = 0, equations = 0;
  for_each_program(attrs, [&](const Program& held) {
    nested = std::max(nested, sum_of(held));
    equations += static_cast<double>(held.equations().size());
  });
  if (traits.control == Control::scan) return nested * static_cast<double>(attrs.integer("length"));
  double own = elements * std::max<double>(per_element, traits.element_nanoseconds);
  if (traits.matrix_nanoseconds > 0 && !inputs.empty() && inputs[0].rank() > 0) {
    own = elements * traits.matrix_nanoseconds * static_cast<double>(inputs[0].shape.back());
  }
  // A region of an equation runs once per element, that of a map once per device.
  const bool repeats = traits.control == Control::none || traits.control == Control::device_map;
  if (equations > 0 && repeats) own += elements * per_region_equation * equations;
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
  if (const Attr* shape = attrs.find("shape")) {  // of results without operands: iota, random bits, broadcasts
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
    if (any_program(equation.attrs, [](const Program& held) { return !may_run_later(held); })) return false;
  }
  return true;
}

}  // namespace capibara::cpu
