// Decides which equations are emitted in registers, and what they cost there.
#include <algorithm>

#include "backends/cpu/regions/registers.h"
#include "backends/cpu/regions/registers_writer.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu {

namespace registers {

bool small(const ArrayType& type) { return !type.ref && has_element(type.dtype) && type.size() <= max_elements; }

bool is_dot(const Program& program, const Equation& equation) {
  if (equation.primitive != prim::dot_general()) return false;
  const DType out = program.type(equation.outputs[0]).dtype;
  if (is_complex(out) || is_bool(out)) return false;
  for (Atom input : equation.inputs) {
    if (program.type(input).dtype != out) return false;
  }
  return true;
}

bool is_arg_reduction(const Primitive& primitive) { return primitive == prim::argmax() || primitive == prim::argmin(); }

}  // namespace registers

namespace {

using namespace registers;

constexpr int64_t max_elements_outside_of_loops = 16;
constexpr int64_t max_body_operations = 6000;  // per body
constexpr int64_t max_memory_operands = 64;

// The number of possible starts of a dynamic slice of values in registers.
int64_t choices(const Shape& whole, const Shape& part) {
  int64_t count = 1;
  for (std::size_t d = 0; d < whole.size(); ++d) count *= whole[d] - part[d] + 1;
  return count;
}

// The cost of the equation, or nullopt if it does not fit. Only an outer loop may stack large results: these are in
// memory.
std::optional<int64_t> cost_of(const Program& program, const Equation& equation, bool outer);

std::optional<int64_t> body_cost(const Program& body) {
  int64_t sum = 0;
  for (const Equation& equation : body.equations()) {
    std::optional<int64_t> cost = cost_of(body, equation, false);
    if (!cost) return std::nullopt;
    sum += *cost;
    if (sum > max_body_operations) return std::nullopt;
  }
  return sum;
}

// Inputs of a body may stay in memory if only slices of them are read.
bool reads_slices_only(const Program& body, Var input) {
  for (Atom output : body.outputs()) {
    if (output == Atom(input)) return false;
  }
  for (const Equation& equation : body.equations()) {
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
      if (equation.inputs[i] != Atom(input)) continue;
      const bool slices =
          (equation.primitive == prim::dynamic_slice() || equation.primitive == prim::slice()) && i == 0;
      if (!slices) return false;
    }
  }
  return true;
}

bool inputs_fit(const Program& body, std::size_t first_carry, std::size_t carries) {
  for (std::size_t i = 0; i < body.invars().size(); ++i) {
    const ArrayType& type = body.type(body.invars()[i]);
    if (small(type)) continue;
    const bool carried = i >= first_carry && i < first_carry + carries;
    if (carried || type.ref || !has_element(type.dtype) || !reads_slices_only(body, body.invars()[i])) return false;
  }
  return true;
}

std::optional<int64_t> cost_of(const Program& program, const Equation& equation, bool outer) {
  const Primitive& primitive = equation.primitive;
  if (!equation.effects.empty()) return std::nullopt;
  for (Var output : equation.outputs) {
    if (output.dropped()) continue;
    const bool stacked = primitive == prim::scan() && outer;  // written iteration by iteration
    if (!small(program.type(output)) && !stacked) return std::nullopt;
  }
  if (const Program* body = called_program(equation)) return inputs_fit(*body, 0, 0) ? body_cost(*body) : std::nullopt;
  if (primitive == prim::scan()) {
    const ScanView view(equation);
    const Program& body = view.body();
    if (!inputs_fit(body, view.consts(), view.carry())) return std::nullopt;
    for (Atom output : body.outputs()) {
      if (!small(body.type(output))) return std::nullopt;
    }
    return body_cost(body);
  }
  if (primitive == prim::while_()) {
    const WhileView view(equation);
    if (!inputs_fit(view.condition(), view.cond_consts(), view.carry())) return std::nullopt;
    if (!inputs_fit(view.body(), view.body_consts(), view.carry())) return std::nullopt;
    std::optional<int64_t> first = body_cost(view.condition()), second = body_cost(view.body());
    return first && second ? std::optional(*first + *second) : std::nullopt;
  }
  if (primitive == prim::cond()) {
    int64_t sum = 0;
    for (const Program& branch : equation.attrs.programs("branches")) {
      if (!inputs_fit(branch, 0, 0)) return std::nullopt;
      std::optional<int64_t> cost = body_cost(branch);
      if (!cost) return std::nullopt;
      sum += *cost;
    }
    return sum;
  }
  if (equation.outputs.empty() || equation.outputs[0].dropped()) {
    if (!(primitive == prim::threefry2x32() || primitive == prim::split())) return std::nullopt;
  }
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const bool sliced = (primitive == prim::dynamic_slice() || primitive == prim::slice()) && i == 0;
    if (!has_element(program.type(equation.inputs[i]).dtype)) return std::nullopt;
    if (!small(program.type(equation.inputs[i])) && !sliced) return std::nullopt;
  }
  int64_t elements = 0;
  for (Var output : equation.outputs) {
    if (!output.dropped()) elements += program.type(output).size();
  }
  const Shape no_shape;
  const Shape& first = equation.inputs.empty() ? no_shape : program.type(equation.inputs[0]).shape;
  if (primitive == prim::dynamic_slice()) {
    if (!small(program.type(equation.inputs[0]))) return elements;
    return elements * choices(first, program.type(equation.outputs[0]).shape);
  }
  if (primitive == prim::dynamic_update_slice()) {
    return elements * choices(first, program.type(equation.inputs[1]).shape);
  }
  if (primitive == prim::reshape() && !equation.attrs["dimensions"].is_none()) return std::nullopt;
  if (moves_elements(equation.primitive) || primitive == prim::iota() || primitive == prim::concatenate() ||
      primitive == prim::pad())
    return 0;
  if (primitive == prim::split()) return 0;
  if (is_reduction(equation.primitive)) return program.type(equation.inputs[0]).size();
  if (is_arg_reduction(equation.primitive)) {
    return is_complex(program.type(equation.inputs[0]).dtype)
               ? std::nullopt
               : std::optional(3 * program.type(equation.inputs[0]).size());
  }
  if (is_dot(program, equation)) {
    int64_t terms = 1;
    for (int64_t d : equation.attrs.get<DotDimensionNumbers>("dimension_numbers").lhs_contracting)
      terms *= first[at(d)];
    return elements * terms;
  }
  std::vector<DType> dtypes;
  for (Atom input : equation.inputs) dtypes.push_back(program.type(input).dtype);
  Var typed = equation.outputs[0];
  for (Var output : equation.outputs) {
    if (!output.dropped()) typed = output;
  }
  if (typed.dropped() || !is_elementwise(equation.primitive, dtypes, program.type(typed).dtype)) return std::nullopt;
  return elements * (is_expensive(equation.primitive) ? 20 : 1);
}

}  // namespace

std::optional<int64_t> registers::cost_inside(const Program& program, const Equation& equation) {
  return cost_of(program, equation, false);
}

bool fits_registers(const Program& program, const Equation& equation) {
  if (equation.inputs.size() > at(max_memory_operands) * 4) return false;
  // Outside loops, longer values are better computed in lanes.
  const Primitive& primitive = equation.primitive;
  const bool holds_loops = is_control(primitive);
  for (Var output : equation.outputs) {
    if (!holds_loops && !output.dropped() && program.type(output).size() > max_elements_outside_of_loops) return false;
  }
  return cost_of(program, equation, true).has_value();
}

int64_t register_cost(const Program& program, const Equation& equation) {
  int64_t moved = 0;  // elements loaded and stored count as well
  for (Atom input : equation.inputs) moved += std::min(max_elements, program.type(input).size());
  for (Var output : equation.outputs)
    moved += output.dropped() ? 0 : std::min(max_elements, program.type(output).size());
  return cost_of(program, equation, true).value_or(0) + moved;
}

}  // namespace capibara::cpu
