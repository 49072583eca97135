// The kind of work of an equation, by its traits and types; the elements that an element depends on, down to memory.
#include "backends/cpu/groups/work.h"

#include <capibara/config.h>

#include <algorithm>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/groups/fuse.h"
#include "backends/cpu/kernels/exchange.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/reference/kernels.h"
#include "program/ir/callback.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

bool known_to_code(const Program& program, const Equation& equation) {
  for (Atom input : equation.inputs) {
    if (program.type(input).ref || !has_element(program.type(input).dtype)) return false;
  }
  for (Var output : equation.outputs) {
    if (output.dropped() || program.type(output).ref || !has_element(program.type(output).dtype)) return false;
  }
  return equation.outputs.size() == 1;
}

}  // namespace

std::vector<bool> kept_dimensions(const Program& program, const Equation& equation) {
  std::vector<bool> kept(program.type(equation.inputs[0]).shape.size(), true);
  for (int64_t axis : equation.attrs.ints("axes")) kept[at(axis)] = false;
  return kept;
}

Work work_of(const Program& program, const Equation& equation) {
  if (is_control(equation.primitive)) return Work::control;
  if (equation.primitive == exchange_wait()) return Work::alias;
  if (!equation.effects.empty() || !known_to_code(program, equation)) return Work::host;
  if (equation.primitive->traits.moves == Moves::pieces) return Work::pieces;
  const Var output = equation.outputs[0];
  if (equation.primitive == prim::reshape()) {
    if (!equation.attrs["dimensions"].is_none()) return Work::host;
    return differs_by_units(program.type(equation.inputs[0]).shape, program.type(output).shape) ? Work::loops
                                                                                                : Work::alias;
  }
  if (moves_elements(equation.primitive) || equation.primitive == prim::iota() || is_counted_bits(program, equation))
    return Work::loops;
  if (is_reduction(equation.primitive)) return Work::loops;
  std::vector<DType> dtypes;
  for (Atom input : equation.inputs) dtypes.push_back(program.type(input).dtype);
  return is_elementwise(equation.primitive, dtypes, program.type(output).dtype) ? Work::loops : Work::host;
}

bool runs_whole(const Program& program, const Equation& equation) {
  const Primitive& primitive = equation.primitive;
  // Splits and concatenations become copies, which fuse with their readers.
  if (primitive->traits.moves == Moves::several) return false;
  if (work_of(program, equation) != Work::host || reference::find_kernel(primitive) || calls_host(primitive))
    return true;
  // The composition of a fused operation on few elements runs in registers, together with its neighbours.
  constexpr int64_t min_kernel_elements = 4096;
  const auto is_large = [&](Atom input) { return program.type(input).size() >= min_kernel_elements; };
  return std::any_of(equation.inputs.begin(), equation.inputs.end(), is_large) && has_own_kernel(program, equation);
}

bool is_counted_bits(const Program& program, const Equation& equation) {
  if (equation.primitive != prim::random_bits() || !config().threefry_partitionable) return false;
  const ArrayType& key = program.type(equation.inputs[0]);
  return key.dtype == DType::key_fry && key.rank() == 0;
}

bool is_guarded(const Program& program, const Equation& equation) {
  if (!equation.effects.empty() || !known_to_code(program, equation)) return false;
  if (equation.primitive == prim::concatenate()) return equation.inputs.size() <= 8;
  if (equation.primitive != prim::pad()) return false;
  for (const Attr& entry : equation.attrs.list("padding_config")) {
    const Ints& padding = *entry.get_if<Ints>();
    if (padding[0] < 0 || padding[1] < 0 || padding[2] != 0) return false;
  }
  return true;
}

std::vector<GuardedPart> guarded_parts(const Program& program, const Equation& equation) {
  std::vector<GuardedPart> parts;
  Ints begin(program.type(equation.outputs[0]).shape.size(), 0);
  if (equation.primitive == prim::pad()) {
    const Attr::List& config = equation.attrs.list("padding_config");
    for (std::size_t d = 0; d < begin.size(); ++d) begin[d] = (*config[d].get_if<Ints>())[0];
    parts.push_back({0, begin});
    return parts;
  }
  const std::size_t dimension = at(equation.attrs.integer("dimension"));
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    parts.push_back({i, begin});
    begin[dimension] += program.type(equation.inputs[i]).shape[dimension];
  }
  return parts;
}

std::optional<Index> operand_index(const Program& program, const Equation& equation, std::size_t number,
                                   const Index& index, const std::function<Symbol()>& free_symbol) {
  const Shape& operand = program.type(equation.inputs[number]).shape;
  if (moves_elements(equation.primitive)) {
    if (number > 0) return Index{};  // the start of a dynamic slice
    return moved_index(equation, index, operand, program.type(equation.outputs[0]).shape,
                       [&](const Equation&, int64_t, int64_t) { return free_symbol(); });
  }
  if (equation.primitive == prim::pad() || equation.primitive == prim::concatenate()) {
    Index result = index;
    for (const GuardedPart& part : guarded_parts(program, equation)) {
      if (part.operand != number) continue;
      for (std::size_t d = 0; d < result.size(); ++d) result[d].constant -= part.begin[d];
      return result;
    }
    return Index{};  // the padding value
  }
  if (is_reduction(equation.primitive)) {
    const std::vector<bool> kept = kept_dimensions(program, equation);
    Index result(operand.size());
    std::size_t next = 0;
    for (std::size_t d = 0; d < operand.size(); ++d) result[d] = kept[d] ? index[next++] : Affine::of(free_symbol());
    return result;
  }
  return stretched_index(index, operand);
}

std::vector<Access> accesses(const Program& program, const Fusion& fusion, const Equation& equation, const Index& index,
                             const std::vector<int>& stops, Symbol first_free) {
  std::vector<Access> found, todo;
  std::vector<Access> seen;
  auto free_symbol = [&] { return first_free++; };
  auto push_operands = [&](const Equation& reader, const Index& place) {
    if (reader.primitive == prim::pad() || reader.primitive == prim::concatenate()) {
      const Shape& whole = program.type(reader.outputs[0]).shape;
      for (const GuardedPart& part : guarded_parts(program, reader)) {
        const Shape& own = program.type(reader.inputs[part.operand]).shape;
        for (std::size_t d = 0; d < whole.size(); ++d) {
          if (own[d] == whole[d]) continue;
          Affine inside = place[d];
          inside.constant -= part.begin[d];
          found.push_back({Var(), {inside, Affine(own[d])}});
        }
      }
    }
    if (reader.primitive == prim::random_bits())
      found.push_back({Var(), {linear(place, program.type(reader.outputs[0]).shape)}});
    if (reader.primitive == prim::iota()) found.push_back({Var(), {place[at(reader.attrs.integer("dimension"))]}});
    for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
      if (reader.inputs[i].is_literal()) continue;
      if (std::optional<Index> operand = operand_index(program, reader, i, place, free_symbol)) {
        todo.push_back({reader.inputs[i].var(), std::move(*operand)});
      }
    }
  };
  push_operands(equation, index);
  while (!todo.empty()) {
    Access access = std::move(todo.back());
    todo.pop_back();
    const auto is_same = [&](const Access& other) { return other.var == access.var && other.index == access.index; };
    if (std::any_of(seen.begin(), seen.end(), is_same)) continue;
    seen.push_back(access);
    const int definition = fusion.definition[at(access.var.id)];
    const bool stop = std::find(stops.begin(), stops.end(), definition) != stops.end();
    if (definition < 0 || !fusion.inlined(access.var) || stop) {
      found.push_back(std::move(access));
    } else {
      push_operands(program.equations()[at(definition)], access.index);
    }
  }
  return found;
}

}  // namespace capibara::cpu
